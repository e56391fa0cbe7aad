import HTTPTypes
import KedgeClient
import KedgeFiles
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// A thousand clients that lost the server at the same moment do not come back at the same moment.
@Suite(.timeLimit(.minutes(2)))
struct ReturnTests {
    private static let clientCount = 1000
    private static let bucketCount = 20
    /// Clients that record every attempt, which takes time.
    private static let recordingClientCount = 250
    /// Fixed seeds stay below 2. Of fresh ones, one in twenty exceeds it after an outage of a
    /// second, and none in 20,000 exceeds 2.5.
    private static let largestRatio = TortureSeeds.areFresh ? 2.5 : 2

    /// The times at which clients return, and how unevenly they are spread.
    private struct Returns {
        var times: [Duration] = []

        /// Returns the clients in the fullest bucket over the mean of the buckets. The buckets span
        /// the time from the first moment at which a client can return to the last return.
        func peakOverMean(since start: Duration) -> Double {
            let last = (times.max() ?? start) - start
            var counts = [Int](repeating: 0, count: bucketCount)
            for time in times {
                let share = (time - start) / last
                counts[min(bucketCount - 1, Int(share * Double(bucketCount)))] += 1
            }
            return Double(counts.max() ?? 0) * Double(bucketCount) / Double(times.count)
        }
    }

    @Test(
        arguments: [1, 3, 7, 10, 14, 20, 30, 45, 60, 120, 600, 3600],
        TortureSeeds.range(from: 0, count: 5))
    func `a thousand clients return evenly spread after an outage`(seconds: Int, seed: UInt64) {
        var generator = SplitMix64(seed: seed &* 1000 &+ 17)
        let policy = RetryPolicy()
        let outage = Duration.seconds(seconds)
        var returns = Returns()
        for _ in 0..<Self.clientCount {
            let phase = Double.random(in: 0..<1, using: &generator)
            var (time, failureCount) = (Duration.zero, 0)
            while time < outage {
                failureCount += 1
                time += policy.delay(
                    afterFailures: failureCount, retryAfter: nil, phase: phase, using: &generator)
            }
            returns.times.append(time)
        }
        let ratio = returns.peakOverMean(since: outage)
        #expect(ratio <= Self.largestRatio, "seed \(seed): \(ratio)")
    }

    @Test(arguments: [1, 7, 40, 300], [1, 9])
    func `a thousand clients return evenly spread after the same Retry-After`(
        seconds: Int, failureCount: Int
    ) {
        var generator = SplitMix64(seed: 5)
        let asked = Duration.seconds(seconds)
        let returns = Returns(
            times: (0..<Self.clientCount).map { _ in
                let phase = Double.random(in: 0..<1, using: &generator)
                return RetryPolicy().delay(
                    afterFailures: failureCount, retryAfter: asked, phase: phase,
                    using: &generator)
            })
        let ratio = returns.peakOverMean(since: asked)
        #expect(ratio <= 2, "\(ratio)")
    }

    /// Uses the type in which transfers wait. Clients do not know of each other, so each one runs
    /// to its end alone, on a clock of its own.
    @Test(arguments: [10, 300]) func `transfers return evenly spread after an outage`(seconds: Int)
        async throws
    {
        let fixture = try TransferEnvironment()
        try fixture.write("source.bin", [1])
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: fixture.path("source.bin"))
        guard case .acquired(let lease) = try await client.store.acquireLease(id, for: client.owner)
        else {
            Issue.record("somebody else runs it")
            return
        }
        try await client.store.start(lease)
        let outage = Duration.seconds(seconds)
        var returns = Returns()
        for number in 0..<Self.recordingClientCount {
            let life = Life(seed: UInt64(number) &+ 99)
            var environment = fixture.environment
            environment.now = { Timestamp(millisecondsSinceEpoch: 0).advanced(by: life.time) }
            environment.sleep = { life.advance(by: $0) }
            environment.makeGenerator = { life.makeGenerator() }
            let coordinator = RetryCoordinator(
                lease: lease, store: client.store, environment: environment,
                configuration: client.configuration, serverHistory: .known)
            try await coordinator.retrying {
                guard life.time >= outage else {
                    throw RequestFailure(TransportError(.offline), operation: "test")
                }
            }
            returns.times.append(life.time)
        }
        let ratio = returns.peakOverMean(since: outage)
        #expect(ratio <= 2, "\(ratio)")
        try await client.close()
    }
}

/// The clock and the randomness of one client.
private final class Life: Sendable {
    private let state: Mutex<(time: Duration, random: SplitMix64)>

    init(seed: UInt64) { state = Mutex((.zero, SplitMix64(seed: seed))) }

    var time: Duration { state.withLock { $0.time } }

    func advance(by duration: Duration) { state.withLock { $0.time += duration } }

    func makeGenerator() -> AnyGenerator {
        AnyGenerator(SplitMix64(seed: state.withLock { $0.random.next() }))
    }
}
