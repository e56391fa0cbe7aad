/// Runs curl as a user does.
enum Curl {
    /// Fetches a file and waits until curl ends.
    ///
    /// - Throws: ``BenchFailure`` with curl's output when it fails.
    static func fetch(
        _ bench: Bench, _ path: String, from server: any Server, to destination: String
    ) throws {
        let directory = try bench.scratch.makeDirectory("curl")
        defer { Scratch.remove(directory) }
        let curl = try BenchProcess(
            try Executable.require("curl"),
            [
                "--silent", "--show-error", "--fail", "--output", destination,
                "http://127.0.0.1:\(server.port)\(path)",
            ], home: directory, log: "\(directory)/log")
        guard try curl.wait(limit: 600).status == 0 else {
            throw BenchFailure("curl: \(try TextFile.read("\(directory)/log"))")
        }
    }
}
