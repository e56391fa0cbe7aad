import HTTPTypes
import KedgeCurl
import Testing

struct ConnectionLineTests {
    private let now = ContinuousClock.now
    private let loop = CurlLoop(configuration: .init())

    private func entry(
        _ url: String = "http://a.example/", deadline: ContinuousClock.Instant? = nil
    ) throws -> ConnectionLine.Entry {
        let origin = try #require(URLOrigin(url))
        return ConnectionLine.Entry(
            request: CurlRequest(method: .get, url: url),
            exchange: Exchange(operation: "GET", origin: origin, loop: loop),
            deadline: deadline)
    }

    @Test func `the request that waited longest goes next`() throws {
        var line = ConnectionLine(maxConnectionsPerOrigin: 1)
        let entries = try (0..<3).map { _ in try entry() }
        let haveEntered = entries.map { line.enter($0) }
        let origin = entries[0].exchange.origin
        let next = (0..<3).map { _ in line.leave(origin) }
        #expect(haveEntered == [true, false, false])
        #expect(next[0]?.exchange === entries[1].exchange)
        #expect(next[1]?.exchange === entries[2].exchange)
        #expect(next[2] == nil)
        let hasEnteredAgain = line.enter(try entry())
        #expect(hasEnteredAgain)
    }

    @Test(arguments: ["https://a.example/", "http://a.example:81/", "http://b.example/"])
    func `another origin has its own line`(_ url: String) throws {
        var line = ConnectionLine(maxConnectionsPerOrigin: 1)
        let haveEntered = [line.enter(try entry()), line.enter(try entry(url))]
        #expect(haveEntered == [true, true])
    }

    @Test func `an origin ignores the default port and the case of the host`() {
        #expect(URLOrigin("http://A.example/x") == URLOrigin("http://u:p@a.example:80/y"))
    }

    @Test func `a request that is cancelled or out of time leaves the line`() throws {
        var line = ConnectionLine(maxConnectionsPerOrigin: 1)
        let active = try entry()
        let cancelled = try entry()
        let late = try entry(deadline: now)
        let patient = try entry(deadline: now + .seconds(1))
        let haveEntered = [active, cancelled, late, patient].map { line.enter($0) }
        #expect(haveEntered == [true, false, false, false])
        #expect(line.nextDeadline == now)

        line.remove(cancelled.exchange)
        let expired = line.removeExpired(now: now)
        #expect(expired.map { $0.exchange === late.exchange } == [true])
        #expect(line.nextDeadline == now + .seconds(1))
        let next = line.leave(active.exchange.origin)
        #expect(next?.exchange === patient.exchange)
    }
}
