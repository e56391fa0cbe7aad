internal import Glibc

/// A running server: ours, or one for comparison.
protocol Server: AnyObject, Sendable {
    /// Its name in tables.
    var name: String { get }
    var port: UInt16 { get }
    var process: BenchProcess { get }
    /// The certificate of a server that speaks TLS only; nil for plain HTTP.
    var certificate: Certificate? { get }

    /// Stops the server and removes all its files.
    ///
    /// - Throws: ``BenchFailure`` when it does not end normally.
    func discard() throws
}

extension Server {
    var certificate: Certificate? { nil }

    /// The address to which paths are appended.
    var url: String { "\(certificate == nil ? "http" : "https")://127.0.0.1:\(port)" }

    /// Connects without TLS.
    ///
    /// - Parameter fields: Fields of every request, such as a credential.
    func connect(fields: [String] = []) throws -> BenchConnection {
        try BenchConnection(port: port, fields: fields)
    }

    /// Usage of its processes so far.
    var usage: ProcessUsage { ProcessUsage(of: process.id) }

    /// Returns the resident memory of its processes after a second, in which they release what
    /// they needed only for a moment.
    func settledResidentMiB() -> Double {
        pause(seconds: 1)
        return Double(usage.residentKiB) / 1024
    }

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
