import Foundation
import KedgeLocks
import KedgeTesting
import Testing

/// A directory for one test, with the processes started in it. Its end removes everything, also
/// when the test fails.
final class CommandEnvironment: Sendable {
    let directory: String
    private let children = Mutex<[ChildProcess]>([])
    private let proxies = Mutex<[FaultyProxy]>([])
    private let disks = Mutex<[String]>([])
    private let count = Mutex(0)

    init() throws {
        directory = try Self.makeDirectory("kedge-command")
    }

    /// Makes a new directory for temporary files.
    static func makeDirectory(_ name: String) throws -> String {
        let parent = FileManager.default.temporaryDirectory.path
        let template = strdup("\(parent)/\(name)-XXXXXX")
        defer { free(template) }
        guard let template, mkdtemp(template) != nil else { throw TestFailure("no directory") }
        return String(cString: template)
    }

    deinit {
        for child in children.withLock({ $0 }) { child.end() }
        for proxy in proxies.withLock({ $0 }) { proxy.stop() }
        for disk in disks.withLock({ $0 }) { umount2(disk, Int32(MNT_DETACH)) }
        // Best effort: leftovers stay in the directory for temporary files.
        try? FileManager.default.removeItem(atPath: directory)
    }

    func path(_ name: String) -> String { "\(directory)/\(name)" }

    private var environment: [String: String] {
        [
            "HOME": directory, "XDG_STATE_HOME": path("state"), "TERM": "dumb",
            "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin",
        ]
    }

    /// Starts any program; it ends with the environment.
    func start(
        program: String, _ arguments: [String], environment extra: [String: String] = [:],
        output: Int32? = nil, endsGently: Bool = false
    ) throws -> ChildProcess {
        let number = count.withLock {
            $0 += 1
            return $0
        }
        let child = try ChildProcess(
            program, arguments, environment: environment.merging(extra) { $1 },
            outputPath: path("\(number).out"), errorPath: path("\(number).err"), output: output,
            endsGently: endsGently)
        children.withLock { $0.append(child) }
        return child
    }

    /// Starts `kedge`.
    func start(
        _ arguments: [String], environment: [String: String] = [:], output: Int32? = nil
    ) throws -> ChildProcess {
        try start(
            program: try Command.path(), arguments, environment: environment, output: output)
    }

    /// Runs `kedge` to its end.
    @discardableResult
    func run(
        _ arguments: [String], environment: [String: String] = [:],
        within limit: Duration = .seconds(90)
    ) async throws -> Finished {
        try await finish(try start(arguments, environment: environment), within: limit)
    }

    /// Waits for a command's end.
    func finish(
        _ child: ChildProcess, within limit: Duration = .seconds(90)
    ) async throws -> Finished {
        Finished(
            termination: try await child.wait(within: limit), output: child.output,
            errors: child.errors)
    }

    /// Starts a server and waits until it serves.
    func serve(
        data: String = "data", port: UInt16 = 0, _ arguments: [String] = []
    ) async throws -> Server {
        let process = try start(
            [
                "serve", "--port", "\(port)", "--data", path(data), "--log-format", "json",
                "--log-level", "debug",
            ] + arguments)
        let port: UInt16 = try await eventually("the server serves") {
            if let port = Server.port(in: process.errors) { return port }
            guard process.isRunning else { throw TestFailure("no server: \(process.errors)") }
            return nil
        }
        return Server(
            process: process, port: port,
            isSecure: process.errors.contains("serving on https://"))
    }

    /// Starts a proxy.
    func proxy(to port: UInt16, _ faults: Faults = Faults()) throws -> FaultyProxy {
        let proxy = try FaultyProxy(upstreamPort: port, faults: faults)
        proxies.withLock { $0.append(proxy) }
        return proxy
    }

    /// Makes a small disk; see ``SmallDisk/isAvailable``.
    func disk(_ name: String, byteCount: Int) throws -> String {
        let path = path(name)
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true)
        guard mount("tmpfs", path, "tmpfs", 0, "size=\(byteCount)") == 0 else {
            throw TestFailure("cannot mount: \(errno)")
        }
        disks.withLock { $0.append(path) }
        return path
    }

    /// Names in a directory, hidden ones too.
    func names(in directory: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    }

    /// The path of the temporary file of a download in a directory, if there is one.
    func temporaryFile(in directory: String) -> String? {
        names(in: directory).first { $0.hasSuffix(".kedge-part") }.map { "\(directory)/\($0)" }
    }
}

/// The `kedge` command under test.
enum Command {
    /// Returns the path beside the test bundle, where the build puts both. `TEST_KEDGE` names
    /// another one.
    static func path() throws -> String {
        if let path = ProcessInfo.processInfo.environment["TEST_KEDGE"] { return path }
        let bundle = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let path = (bundle as NSString).deletingLastPathComponent + "/kedge"
        guard access(path, X_OK) == 0 else { throw TestFailure("there is no \(path)") }
        return path
    }
}

/// Small file systems that fill up; only a privileged user can mount them.
enum SmallDisk {
    static let isAvailable: Bool = {
        guard let path = try? CommandEnvironment.makeDirectory("kedge-disk") else { return false }
        defer { rmdir(path) }
        guard mount("tmpfs", path, "tmpfs", 0, "size=65536") == 0 else { return false }
        return umount2(path, Int32(MNT_DETACH)) == 0
    }()

    /// Uses up all free space.
    static func fill(_ disk: String) throws {
        let descriptor = open("\(disk)/ballast", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw TestFailure("no ballast: \(errno)") }
        defer { close(descriptor) }
        let bytes = [UInt8](repeating: 1, count: 1 << 20)
        for size in [1 << 20, 4096] {
            while write(descriptor, bytes, size) > 0 {}
        }
    }

    static func free(_ disk: String) throws {
        try FileManager.default.removeItem(atPath: "\(disk)/ballast")
    }
}

/// A command that has ended.
struct Finished: Sendable {
    let termination: Termination
    let output: String
    let errors: String

    var lines: [String] { output.split(separator: "\n").map(String.init) }

    /// Results among the objects of `--json`, one for each transfer.
    var results: [TransferLine] {
        get throws { try TransferLine.all(output).filter { $0.type == "result" } }
    }

    var result: TransferLine {
        get throws {
            guard let result = try results.last else { throw TestFailure("no result; \(errors)") }
            return result
        }
    }
}
