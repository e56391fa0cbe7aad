/// Connections with TLS that a child process holds, as this program has no TLS. Each has answered
/// one request.
final class IdleConnections {
    private let process: BenchProcess
    private let directory: String

    /// Time for all handshakes.
    private static let limitSeconds = 120.0

    /// Opens the connections.
    ///
    /// - Parameters:
    ///   - certificate: The certificate of the server.
    ///   - scripts: The directory of the script of the child process.
    init(
        _ bench: Bench, to server: KedgeServer, _ certificate: Certificate, count: Int,
        scripts: String
    ) throws {
        directory = try bench.scratch.makeDirectory("connections")
        let (output, log) = ("\(directory)/output", "\(directory)/log")
        try TextFile.write("", to: output)
        process = try BenchProcess(
            try Executable.require("python3"),
            [
                "\(scripts)/idle_connections.py", "\(server.port)", certificate.path, "\(count)",
                "\(directory)/end",
            ], home: directory, output: output, log: log)
        let began = ContinuousClock.now
        while try TextFile.read(output) != "ready\n" {
            guard process.outcome == nil, elapsedSeconds(since: began) < Self.limitSeconds else {
                throw BenchFailure(
                    "not all connections were opened: \(try TextFile.read(log).suffix(400))")
            }
            pause(seconds: 0.02)
        }
    }

    /// Uses each connection once more, which shows that it was open, and closes it.
    func end() throws {
        try TextFile.write("", to: "\(directory)/end")
        guard try process.wait(limit: 60).status == 0 else {
            let log = try TextFile.read("\(directory)/log")
            throw BenchFailure("an idle connection was closed: \(log.suffix(400))")
        }
        Scratch.remove(directory)
    }
}
