import HTTPTypes
import KedgeClient
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// R126: the client keeps as many chunks in flight as configured, and never one more.
@Suite(.timeLimit(.minutes(1)))
struct ConnectionsTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(1_500_000)

    init() throws { fixture = try TransferEnvironment() }

    /// Returns how many chunk requests are in flight once no further one starts.
    private func arrivals(
        _ connections: Int?, begin: (TransferClient) async throws -> TransferID
    ) async throws -> Int {
        let gate = Gate()
        fixture.plan(.wait(gate), count: 1000) {
            $0.path.contains("/chunks/") || $0.fields[.range] != nil
        }
        let client = try await fixture.client { $0.connections = connections }
        let id = try await begin(client)
        let run = Task { try await client.run(id) }
        let count = { gate.arrivalCount }
        _ = try await eventually { count() >= min(connections ?? 4, 8) }
        // A request too many would follow at once.
        try await Task.sleep(for: .milliseconds(200))
        let held = count()
        gate.open()
        #expect(try await run.value.state == .completed)
        return held
    }

    @Test(arguments: [nil, 1, 3, 7])
    func `an upload has as many chunks in flight as are set`(connections: Int?) async throws {
        let path = try fixture.write("source.bin", bytes)
        let held = try await arrivals(connections) { try await $0.enqueueUpload(path: path) }
        #expect(held == connections ?? 4)
    }

    @Test(arguments: [nil, 1, 3, 7])
    func `a download has as many chunks in flight as are set`(connections: Int?) async throws {
        let file = fixture.addFile(bytes)
        let held = try await arrivals(connections) {
            try await $0.enqueueDownload(.file(file), to: fixture.path("out.bin"))
        }
        #expect(held == connections ?? 4)
    }

    @Test func `the server's limit caps the chunks in flight`() async throws {
        let path = try fixture.write("source.bin", bytes)
        let held = try await arrivals(20) { client in
            try await client.enqueueUpload(path: path)
        }
        #expect(held == 8)
    }
}
