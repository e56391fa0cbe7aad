import HTTPTypes
import KedgeCurl
import KedgeTransport
import Testing

struct ConnectionQueueTests {
    private let now = ContinuousClock.now
    private let loop = CurlLoop(configuration: .init())

    private func entry(
        _ url: String = "http://a.example/", deadline: ContinuousClock.Instant? = nil
    ) throws -> ConnectionQueue.Entry {
        let origin = try #require(URLOrigin(url))
        return ConnectionQueue.Entry(
            request: TransportRequest(method: .get, url: url),
            exchange: Exchange(operation: "GET", origin: origin, loop: loop),
            deadline: deadline)
    }

    @Test func `the request that waited longest goes next`() throws {
        var queue = ConnectionQueue(maxConnectionsPerOrigin: 1)
        let entries = try (0..<3).map { _ in try entry() }
        let haveEntered = entries.map { queue.enter($0) }
        let origin = entries[0].exchange.origin
        let next = (0..<3).map { _ in queue.leave(origin) }
        #expect(haveEntered == [true, false, false])
        #expect(next[0]?.exchange === entries[1].exchange)
        #expect(next[1]?.exchange === entries[2].exchange)
        #expect(next[2] == nil)
        let hasEnteredAgain = queue.enter(try entry())
        #expect(hasEnteredAgain)
    }

    @Test(arguments: ["https://a.example/", "http://a.example:81/", "http://b.example/"])
    func `another origin has its own queue`(_ url: String) throws {
        var queue = ConnectionQueue(maxConnectionsPerOrigin: 1)
        let haveEntered = [queue.enter(try entry()), queue.enter(try entry(url))]
        #expect(haveEntered == [true, true])
    }

    @Test func `an origin ignores the default port and the case of the host`() {
        #expect(URLOrigin("http://A.example/x") == URLOrigin("http://u:p@a.example:80/y"))
    }

    @Test func `a request that is cancelled or out of time leaves the queue`() throws {
        var queue = ConnectionQueue(maxConnectionsPerOrigin: 1)
        let active = try entry()
        let cancelled = try entry()
        let late = try entry(deadline: now)
        let patient = try entry(deadline: now + .seconds(1))
        let haveEntered = [active, cancelled, late, patient].map { queue.enter($0) }
        #expect(haveEntered == [true, false, false, false])
        #expect(queue.nextDeadline == now)

        queue.remove(cancelled.exchange)
        let expired = queue.removeExpired(now: now)
        #expect(expired.map { $0.exchange === late.exchange } == [true])
        #expect(queue.nextDeadline == now + .seconds(1))
        let next = queue.leave(active.exchange.origin)
        #expect(next?.exchange === patient.exchange)
    }
}
