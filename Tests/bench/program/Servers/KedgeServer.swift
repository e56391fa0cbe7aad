/// Kedge's own server, the measured binary, with its own data directory.
final class KedgeServer: Server {
    let name = "kedge"
    let port: UInt16
    let process: BenchProcess
    let directory: String

    /// Ways to start the server that differ from a user's.
    enum Manner: Sendable {
        case plain
        /// The server answers before anything is durable: the measuring switch.
        case withoutDurability
        /// Each sync takes 5 ms longer, as on a disk that has no cache in front of it.
        case withSlowSyncs
    }

    static let slowSyncMilliseconds = 5

    /// Starts a server and waits until it is ready.
    ///
    /// - Parameters:
    ///   - directory: Directory of data and log; nil makes a new one.
    init(
        _ bench: Bench, manner: Manner = .plain, options: [String] = [], directory: String? = nil
    ) throws {
        let directory = try directory ?? bench.scratch.makeDirectory("kedge")
        self.directory = directory
        port = try BenchSocket.freePort()
        var words = [
            bench.settings.kedge, "serve", "--host", "127.0.0.1", "--port", "\(port)", "--data",
            "\(directory)/data",
        ]
        words += options
        switch manner {
        case .plain: break
        case .withoutDurability: words += ["--durability", "off"]
        case .withSlowSyncs: words = try Self.slowSyncs() + words
        }
        process = try BenchProcess(
            words[0], Array(words.dropFirst()), home: directory, log: "\(directory)/server.log")
        try waitUntil { isReady }
    }

    /// Makes the command that delays system calls with strace(1). It stops the server at these
    /// calls only, and runs beside it, so that the child's id and status are the server's.
    private static func slowSyncs() throws -> [String] {
        let delayMicroseconds = slowSyncMilliseconds * 1000
        return [
            try Executable.require("strace"), "-D", "-f", "--seccomp-bpf",
            "-e", "trace=fdatasync,fsync",
            "-e", "inject=fdatasync,fsync:delay_exit=\(delayMicroseconds)", "-o", "/dev/null",
        ]
    }

    /// Whether strace exists and the system permits it, which containers often do not.
    static func canSlowSyncs(_ bench: Bench) throws -> Bool {
        guard Executable.find("strace") != nil else { return false }
        let directory = try bench.scratch.makeDirectory("strace")
        let words = try slowSyncs() + [Executable.require("true")]
        let trial = try BenchProcess(
            words[0], Array(words.dropFirst()), home: directory, log: "\(directory)/log")
        return try trial.wait(limit: 30).status == 0
    }

    private var isReady: Bool {
        // Until the server listens, connections are refused.
        (try? connect().request("GET", "/readyz"))?.status == 200
    }

    /// Stops the server; its data stays for the next one.
    func stop() throws {
        try process.stop()
    }

    func discard() throws {
        try stop()
        Scratch.remove(directory)
    }

    /// Whether the binary has the measuring switch. Measurements that need it ask once.
    static func hasDurabilitySwitch(_ bench: Bench) throws -> Bool {
        let directory = try bench.scratch.makeDirectory("help")
        let help = try BenchProcess(
            bench.settings.kedge, ["serve", "--help"], home: directory, log: "\(directory)/help")
        _ = try help.wait(limit: 30)
        return try TextFile.read("\(directory)/help").contains("--durability")
    }
}
