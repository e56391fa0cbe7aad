internal import Glibc

/// A running server: ours, or one for comparison.
protocol Server: AnyObject, Sendable {
    /// Its name in tables.
    var name: String { get }
    var port: UInt16 { get }
    var process: BenchProcess { get }

    /// Stops the server and removes all its files.
    ///
    /// - Throws: ``BenchFailure`` when it does not end normally.
    func discard() throws
}

extension Server {
    func connect() throws -> BenchConnection {
        try BenchConnection(port: port)
    }

    /// Usage of its processes so far.
    var usage: ProcessUsage { ProcessUsage(of: process.id) }

    /// Waits until it accepts connections.
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
