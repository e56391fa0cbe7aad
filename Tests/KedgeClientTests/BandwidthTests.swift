import GRDB
import KedgeClient
import KedgeTesting
import Testing

/// Limits of the rate that another process requests while a client runs.
@Suite(.timeLimit(.minutes(1)))
struct BandwidthTests {
    private let fixture: TransferEnvironment

    init() throws { fixture = try TransferEnvironment() }

    private func request(_ number: Int64) -> BandwidthRequest {
        BandwidthRequest(number: number, rates: BandwidthRates(upload: number * 100))
    }

    @Test func `only requests after the first read are adopted`() {
        var follower = BandwidthFollower()
        let rates = [3, 3, 4, 4, 6].map { follower.note(request($0))?.upload }
        #expect(rates == [nil, nil, 400, nil, 600])
    }

    @Test func `the first request ever is adopted`() {
        var follower = BandwidthFollower()
        let requests: [BandwidthRequest?] = [nil, nil, request(1), request(1)]
        let rates = requests.map { follower.note($0)?.upload }
        #expect(rates == [nil, nil, 100, nil])
    }

    @Test func `a request from before the start is not adopted when the first read fails`()
        async throws
    {
        let limit = BandwidthLimit(BandwidthRates(upload: 1))
        let client = try await fixture.client { $0.bandwidth = limit }
        try await client.requestBandwidth(BandwidthRates(upload: 2))
        let records = try fixture.openRecords()
        try await records.write {
            try $0.execute(sql: "ALTER TABLE bandwidth_request RENAME TO away")
        }
        let following = Task { await client.followBandwidthRequests() }
        try await Task.sleep(for: .milliseconds(500))
        try await records.write {
            try $0.execute(sql: "ALTER TABLE away RENAME TO bandwidth_request")
        }
        try records.close()
        try await Task.sleep(for: .milliseconds(1500))
        #expect(limit.rates.upload == 1)
        // Repeated, in case the first one comes before the first read on a busy machine.
        let isAdopted = try await eventually {
            try await client.requestBandwidth(BandwidthRates(upload: 3))
            return limit.rates.upload == 3
        }
        #expect(isAdopted)
        following.cancel()
        await following.value
    }
}
