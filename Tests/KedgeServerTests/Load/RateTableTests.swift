import KedgeLocks
import KedgeServer
import Testing

/// A monotonic clock that a test sets.
final class ManualInstant: Sendable {
    private let start = ContinuousClock.now
    private let passed = Mutex<Duration>(.zero)

    var now: ContinuousClock.Instant { start + passed.withLock { $0 } }

    func advance(by duration: Duration) { passed.withLock { $0 += duration } }
}

struct RateTableTests {
    private let clock = ManualInstant()

    private func table(
        _ count: Int, per period: Duration, burst: Int, maxPartyCount: Int = 65_536
    ) throws -> RateTable<String> {
        let rate = try #require(RequestRate(count: count, per: period, burst: burst))
        return RateTable(rate, maxPartyCount: maxPartyCount) { [clock] in clock.now }
    }

    @Test func `a burst passes at once, and the next request waits for its place`() throws {
        let table = try table(10, per: .seconds(1), burst: 3)
        for _ in 0..<3 { #expect(table.take("a") == nil) }
        #expect(table.take("a") == .milliseconds(100))
        clock.advance(by: .milliseconds(99))
        #expect(table.take("a") == .milliseconds(1))
        clock.advance(by: .milliseconds(1))
        #expect(table.take("a") == nil)
        #expect(table.take("a") == .milliseconds(100))
    }

    @Test func `a refused request is not counted`() throws {
        let table = try table(1, per: .seconds(60), burst: 1)
        #expect(table.take("a") == nil)
        for _ in 0..<100 { #expect(table.take("a") == .seconds(60)) }
        clock.advance(by: .seconds(60))
        #expect(table.take("a") == nil)
    }

    @Test func `a pause gives back the burst, and not more`() throws {
        let table = try table(2, per: .seconds(1), burst: 2)
        clock.advance(by: .seconds(1000))
        for _ in 0..<2 { #expect(table.take("a") == nil) }
        #expect(table.take("a") != nil)
        clock.advance(by: .seconds(1000))
        for _ in 0..<2 { #expect(table.take("a") == nil) }
        #expect(table.take("a") != nil)
    }

    @Test(arguments: [1, 7, 60, 1000])
    func `over a long time the rate is kept`(perMinute: Int) throws {
        let table = try table(perMinute, per: .seconds(60), burst: 1)
        var acceptedCount = 0
        for _ in 0..<6000 {
            if table.take("a") == nil { acceptedCount += 1 }
            clock.advance(by: .milliseconds(100))
        }
        // Ten minutes; requests come ten times a second.
        let expected = min(perMinute * 10, 6000)
        #expect((expected - expected / 5...expected + 1).contains(acceptedCount))
    }

    @Test func `parties do not share their rate`() throws {
        let table = try table(1, per: .seconds(1), burst: 1)
        #expect(table.take("a") == nil)
        #expect(table.take("b") == nil)
        #expect(table.take("a") != nil)
    }

    @Test func `asking for the wait counts nothing`() throws {
        let table = try table(1, per: .seconds(1), burst: 1)
        for _ in 0..<10 { #expect(table.wait(for: "a") == nil) }
        #expect(table.take("a") == nil)
        #expect(table.wait(for: "a") == .seconds(1))
    }

    @Test func `events above the rate lengthen the wait`() throws {
        let table = try table(10, per: .seconds(1), burst: 50)
        for _ in 0..<49 { table.count("a") }
        #expect(table.wait(for: "a") == nil)
        for _ in 0..<11 { table.count("a") }
        #expect(table.wait(for: "a") == .milliseconds(1100))
    }

    @Test func `the number of parties is bounded, and the busiest are kept`() throws {
        let table = try table(1, per: .seconds(1), burst: 1, maxPartyCount: 100)
        for _ in 0..<500 { table.count("busy") }
        for number in 0..<10_000 {
            table.count("party \(number)")
            #expect(table.partyCount <= 100)
        }
        #expect(table.wait(for: "busy") == .seconds(500))
    }

    @Test func `parties whose time has passed make room`() throws {
        let table = try table(1, per: .seconds(1), burst: 1, maxPartyCount: 100)
        for number in 0..<100 { table.count("party \(number)") }
        clock.advance(by: .seconds(2))
        table.count("new")
        #expect(table.partyCount == 1)
    }

    @Test func `a count of zero is no rate`() {
        #expect(RequestRate(count: 0, per: .seconds(1), burst: 1) == nil)
    }

    @Test func `concurrent requests get no more than the burst`() async throws {
        let table = try table(1, per: .seconds(3600), burst: 50)
        let acceptedCount = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<200 { group.addTask { table.take("a") == nil } }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(acceptedCount == 50)
    }

    @Test func `a warning passes once a minute`() {
        let pace = WarningPace { [clock] in clock.now }
        #expect(pace.isDue())
        clock.advance(by: .seconds(59))
        #expect(!pace.isDue())
        clock.advance(by: .seconds(1))
        #expect(pace.isDue())
        #expect(!pace.isDue())
    }
}
