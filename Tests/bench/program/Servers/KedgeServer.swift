/// Kedge's own server, the binary that is measured, with a data directory of its own.
final class KedgeServer: Server {
    let name = "kedge"
    let port: UInt16
    let process: ChildProcess
    let directory: String

    /// How the server is started, where it is not as users start it.
    enum Manner: Sendable {
        case plain
        /// Answers before anything is durable: the measuring switch.
        case withoutDurability
        /// Each sync takes 5 ms longer, as on a disk that has no cache in front of it.
        case withSlowSyncs
    }

    static let slowSyncMilliseconds = 5

    /// Starts a server and waits until it is ready.
    ///
    /// - Parameters:
    ///   - directory: Where data and log go; nil makes a new one.
    init(
        _ bench: Bench, manner: Manner = .plain, options: [String] = [], directory: String? = nil
    ) throws {
        let directory = try directory ?? bench.scratch.makeDirectory("kedge")
        self.directory = directory
        port = try LoopbackSocket.freePort()
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
        process = try ChildProcess(
            words[0], Array(words.dropFirst()), home: directory, log: "\(directory)/server.log")
        try waitUntil { isReady }
    }

    /// strace(1) delays the system calls of a program that it starts. It stops the program at these
    /// calls only, and as a process beside it, so that id and status of the child are the server's.
    private static func slowSyncs() throws -> [String] {
        let delayMicroseconds = slowSyncMilliseconds * 1000
        return [
            try Executable.require("strace"), "-D", "-f", "--seccomp-bpf",
            "-e", "trace=fdatasync,fsync",
            "-e", "inject=fdatasync,fsync:delay_exit=\(delayMicroseconds)", "-o", "/dev/null",
        ]
    }

    /// Whether strace is here and the system lets it work; in containers it often does not.
    static func canSlowSyncs(_ bench: Bench) throws -> Bool {
        guard Executable.find("strace") != nil else { return false }
        let directory = try bench.scratch.makeDirectory("strace")
        let words = try slowSyncs() + [Executable.require("true")]
        let trial = try ChildProcess(
            words[0], Array(words.dropFirst()), home: directory, log: "\(directory)/log")
        return try trial.wait(limit: 30).status == 0
    }

    private var isReady: Bool {
        (try? connect().request("GET", "/readyz"))?.status == 200
    }

    /// Ends it; its data stays for the next one.
    func stop() throws {
        try process.stop()
    }

    func discard() throws {
        try stop()
        Scratch.remove(directory)
    }

    /// Whether the binary has the measuring switch; asked once by those who need it.
    static func hasDurabilitySwitch(_ bench: Bench) throws -> Bool {
        let directory = try bench.scratch.makeDirectory("help")
        let help = try ChildProcess(
            bench.settings.kedge, ["serve", "--help"], home: directory, log: "\(directory)/help")
        _ = try help.wait(limit: 30)
        return try TextFile.read("\(directory)/help").contains("--durability")
    }
}
