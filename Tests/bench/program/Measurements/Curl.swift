/// curl as a user starts it.
enum Curl {
    /// Fetches a file and waits for curl's end.
    ///
    /// - Throws: ``BenchFailure`` with what it said when it fails.
    static func fetch(
        _ bench: Bench, _ path: String, from server: any Server, to destination: String
    ) throws {
        let directory = try bench.scratch.makeDirectory("curl")
        defer { Scratch.remove(directory) }
        let curl = try ChildProcess(
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
