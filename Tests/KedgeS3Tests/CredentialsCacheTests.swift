import KedgeFiles
import KedgeLocks
import KedgeModel
import KedgeS3
import Testing

struct CredentialsCacheTests {
    private final class Clock: WallClock {
        let seconds = Mutex<Int64>(0)

        func now() -> Timestamp {
            Timestamp(millisecondsSinceEpoch: seconds.withLock { $0 } * 1000)
        }
    }

    /// A source of numbered credentials that last an hour.
    private final class Source: CredentialsSource {
        let count = Mutex(0)
        let isFailing = Mutex(false)
        private let clock: Clock

        init(_ clock: Clock) { self.clock = clock }

        func load() async throws -> S3Credentials? {
            await Task.yield()
            if isFailing.withLock({ $0 }) { throw S3SetupError("it fails") }
            let number = count.withLock { count in
                count += 1
                return count
            }
            return S3Credentials(
                accessKeyID: "\(number)", secretAccessKey: Secret("s"),
                expiresAt: clock.now().advanced(by: .seconds(3600)))
        }
    }

    private struct Nothing: CredentialsSource {
        func load() async throws -> S3Credentials? { nil }
    }

    @Test func `the first source with credentials is asked once for all concurrent users`()
        async throws
    {
        let clock = Clock()
        let source = Source(clock)
        let cache = CredentialsCache([Nothing(), source], clock: clock)
        let ids = try await withThrowingTaskGroup { group in
            for _ in 0..<20 {
                group.addTask { try await cache.credentials().accessKeyID }
            }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(ids == ["1"])
    }

    @Test func `cached credentials are renewed before they expire`() async throws {
        let clock = Clock()
        let cache = CredentialsCache([Source(clock)], clock: clock)
        #expect(try await cache.credentials().accessKeyID == "1")
        clock.seconds.withLock { $0 = 3000 }
        #expect(try await cache.credentials().accessKeyID == "1")
        clock.seconds.withLock { $0 = 3400 }
        #expect(try await cache.credentials().accessKeyID == "2")
    }

    @Test func `cached credentials are used while their renewal fails, until they expire`()
        async throws
    {
        let clock = Clock()
        let source = Source(clock)
        let cache = CredentialsCache([source], clock: clock)
        _ = try await cache.credentials()
        source.isFailing.withLock { $0 = true }
        clock.seconds.withLock { $0 = 3400 }
        #expect(try await cache.credentials().accessKeyID == "1")
        clock.seconds.withLock { $0 = 3600 }
        await #expect(throws: S3SetupError.self) { try await cache.credentials() }
    }

    @Test func `refused credentials are fetched again, but only those`() async throws {
        let clock = Clock()
        let cache = CredentialsCache([Source(clock)], clock: clock)
        let first = try await cache.credentials()
        await cache.invalidate(first)
        #expect(try await cache.credentials().accessKeyID == "2")
        await cache.invalidate(first)
        #expect(try await cache.credentials().accessKeyID == "2")
    }

    @Test func `a cache whose sources have no credentials reports an error`() async {
        let cache = CredentialsCache([Nothing()], clock: Clock())
        await #expect(throws: S3SetupError.self) { try await cache.credentials() }
    }
}
