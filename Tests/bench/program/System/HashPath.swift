/// The instructions with which the measured binary computes SHA-256.
enum HashPath {
    /// Returns the name that `kedge doctor` prints; "unknown" for a binary that prints none.
    static func name(of kedge: String, in scratch: Scratch) throws -> String {
        let home = try scratch.makeDirectory("doctor")
        defer { Scratch.remove(home) }
        let output = "\(home)/output"
        // No server answers there, so the exit status is that of a failure.
        let process = try BenchProcess(
            kedge, ["doctor", "--server", "http://127.0.0.1:1"], home: home, output: output,
            log: "\(home)/log")
        _ = try process.wait(limit: 90)
        let line = try TextFile.read(output).split(separator: "\n").first {
            $0.hasPrefix("SHA-256: with ")
        }
        return line?.split(separator: " ").last.map(String.init) ?? "unknown"
    }
}
