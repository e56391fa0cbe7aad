internal import Glibc

/// The size of the binary as it is installed, and how soon it does something.
enum Binary {
    static func measure(_ bench: Bench) throws -> Measured {
        var versions: [Double] = []
        var starts: [Double] = []
        for _ in 0..<(5 * bench.scale.runs) {
            versions.append(try version(bench))
            starts.append(try start(bench))
        }
        return Measured(rows: [
            Row("binary.size", "kedge, without symbols", .mebibytes, [try size(bench)]),
            Row("binary.version", "kedge --version", .milliseconds, versions),
            Row("binary.start", "kedge serve, to its first answer", .milliseconds, starts),
        ])
    }

    /// Returns the size in MiB of a copy without symbols.
    private static func size(_ bench: Bench) throws -> Double {
        let directory = try bench.scratch.makeDirectory("binary")
        defer { Scratch.remove(directory) }
        let copy = "\(directory)/kedge"
        let strip = try BenchProcess(
            try Executable.require("strip"), ["--strip-all", "-o", copy, bench.settings.kedge],
            home: directory, log: "\(directory)/log")
        guard try strip.wait(limit: 60).status == 0 else { throw BenchFailure("strip failed") }
        var facts = stat()
        guard stat(copy, &facts) == 0 else { throw BenchFailure.system("look at \(copy)") }
        return Double(facts.st_size) / 1_048_576
    }

    private static func version(_ bench: Bench) throws -> Double {
        let directory = try bench.scratch.makeDirectory("version")
        defer { Scratch.remove(directory) }
        return try elapsedSeconds {
            let process = try BenchProcess(
                bench.settings.kedge, ["--version"], home: directory, log: "\(directory)/log")
            guard try process.wait(limit: 30).status == 0 else {
                throw BenchFailure("kedge --version failed")
            }
        } * 1000
    }

    /// Measures with a data directory that the server has to make first.
    private static func start(_ bench: Bench) throws -> Double {
        let began = ContinuousClock.now
        let server = try KedgeServer(bench)
        let milliseconds = elapsedSeconds(since: began) * 1000
        try server.discard()
        return milliseconds
    }
}
