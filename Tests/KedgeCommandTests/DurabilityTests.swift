import Foundation
import KedgeTesting
import Testing

/// `kedge serve --durability`: the switch has its effect, and the server warns when it is off.
@Suite(.timeLimit(.minutes(2)))
struct DurabilityTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private static let off = ["--durability", "off"]

    /// Levels of the log lines about durability so far.
    private static func warnings(of server: Server) throws -> [String] {
        try server.process.errors.split(separator: "\n")
            // Other lines may still be incomplete.
            .filter { $0.hasPrefix("{") && $0.contains("\"durability\":\"off\"") }
            .map { try JSONDecoder().decode([String: String].self, from: Data($0.utf8)) }
            .map { $0["level"] ?? "" }
    }

    @Test func `a server without durability logs a warning, over old data and at every log level`()
        async throws
    {
        let durable = try await fixture.serve()
        let source = try fixture.sample(mebibytes: 1)
        let id = try await fixture.upload(source, to: durable.url)
        #expect(try Self.warnings(of: durable) == [])
        durable.process.end()
        for level in ["trace", "critical"] {
            let server = try await fixture.serve(Self.off + ["--log-level", level])
            #expect(try Self.warnings(of: server) == ["warning"])
            try await fixture.expectServed(source, id: id, at: server.url)
            server.process.end()
        }
    }

    @Test(.enabled(if: SyncTrace.isAvailable, "tracing: no strace, or not permitted"))
    func `an upload is synced only with durability`() async throws {
        let source = try fixture.sample(mebibytes: 8)
        for (options, isSynced) in [([], true), (Self.off, false)] {
            let trace = SyncTrace(path: fixture.path("trace-\(isSynced)"))
            let server = try await serve(traced: trace, data: "data-\(isSynced)", options)
            let id = try await fixture.upload(source, to: server.url)
            try await fixture.expectServed(source, id: id, at: server.url)
            server.process.signal(SIGTERM)
            #expect(try await server.process.wait(within: .seconds(30)) == .exited(0))
            let count = try await trace.syncCount(of: server.process)
            #expect(isSynced ? count > 0 : count == 0, "\(count) syncs with \(options)")
        }
    }

    private func serve(
        traced trace: SyncTrace, data: String, _ options: [String]
    ) async throws -> Server {
        let command = ["serve", "--port", "0", "--data", fixture.path(data)] + options
        let process = try fixture.start(
            program: SyncTrace.program, trace.options + [try Command.path()] + command)
        let port: UInt16 = try await eventually("the server serves") {
            if let port = Server.port(in: process.errors) { return port }
            guard process.isRunning else { throw TestFailure("no server: \(process.errors)") }
            return nil
        }
        return Server(process: process, port: port)
    }
}

/// The syncs of a process, as strace(1) sees them.
struct SyncTrace: Sendable {
    static let program = "/usr/bin/strace"
    let path: String

    /// The options before the traced command. The tracer runs beside it, so that the child has the
    /// id and status of the command itself.
    var options: [String] {
        [
            "-D", "-f", "-e", "trace=fsync,fdatasync,sync,syncfs,sync_file_range",
            "-e", "signal=none", "-o", path,
        ]
    }

    /// Whether tracing works: false in containers that forbid it, and without strace.
    static let isAvailable: Bool = {
        guard access(program, X_OK) == 0 else { return false }
        let trial = Process()
        trial.executableURL = URL(fileURLWithPath: program)
        trial.arguments = ["-D", "-o", "/dev/null", "true"]
        trial.standardError = FileHandle.nullDevice
        do { try trial.run() } catch { return false }
        trial.waitUntilExit()
        return trial.terminationStatus == 0
    }()

    /// Returns the number of syncs until the end of the process.
    func syncCount(of process: ChildProcess) async throws -> Int {
        let lines = try await eventually("the trace has its end") { () -> [Substring]? in
            let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
            let isWhole = lines.contains {
                $0.hasPrefix("\(process.id) ") && $0.contains("+++ exited")
            }
            return isWhole ? lines : nil
        }
        return lines.count { $0.contains("sync") }
    }
}
