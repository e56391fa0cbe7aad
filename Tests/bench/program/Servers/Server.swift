internal import Glibc

/// A running server: ours, or one to compare it with.
protocol Server: AnyObject, Sendable {
    /// As tables call it.
    var name: String { get }
    var port: UInt16 { get }
    var process: ChildProcess { get }

    /// Ends it and removes all it wrote.
    ///
    /// - Throws: ``BenchFailure`` when it does not end as it should.
    func discard() throws
}

extension Server {
    func connect() throws -> HTTPConnection {
        try HTTPConnection(port: port)
    }

    /// What its processes have used so far.
    var usage: ProcessUsage { ProcessUsage(of: process.id) }

    /// Waits until it takes connections.
    func waitUntilListening() throws {
        try waitUntil { (try? connect()) != nil }
    }

    /// - Throws: ``BenchFailure`` when it ends or ten seconds pass first.
    func waitUntil(_ isReady: () -> Bool) throws {
        let began = ContinuousClock.now
        while !isReady() {
            guard process.outcome == nil else { throw BenchFailure("\(name) did not start") }
            guard elapsedSeconds(since: began) < 10 else {
                throw BenchFailure("\(name) is not ready after 10 s")
            }
            pause(seconds: 0.002)
        }
    }
}
