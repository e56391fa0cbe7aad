import Foundation
import KedgeLocks
import KedgeTesting

/// A process that a test started. Its output goes to files, so that no pipe has to be drained.
final class ChildProcess: Sendable {
    let id: pid_t
    let outputPath: String
    let errorPath: String
    private let endsGently: Bool
    private let termination = Mutex<Termination?>(nil)

    /// Starts a program with exactly this environment.
    ///
    /// - Parameters:
    ///   - output: Standard output instead of the file, for example a pipe; closed here.
    ///   - endsGently: It has children of its own, and ends them when it is asked to end.
    init(
        _ executable: String, _ arguments: [String], environment: [String: String],
        outputPath: String, errorPath: String, output: Int32? = nil,
        endsGently: Bool = false
    ) throws {
        self.endsGently = endsGently
        self.outputPath = outputPath
        self.errorPath = errorPath
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        let flags = O_WRONLY | O_CREAT | O_APPEND
        if let output {
            posix_spawn_file_actions_adddup2(&actions, output, 1)
        } else {
            posix_spawn_file_actions_addopen(&actions, 1, outputPath, flags, 0o600)
        }
        posix_spawn_file_actions_addopen(&actions, 2, errorPath, flags, 0o600)

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // Otherwise the process would ignore every signal that a background shell ignores.
        var everySignal = sigset_t()
        sigfillset(&everySignal)
        posix_spawnattr_setsigdefault(&attributes, &everySignal)
        var noSignal = sigset_t()
        sigemptyset(&noSignal)
        posix_spawnattr_setsigmask(&attributes, &noSignal)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGDEF) | Int16(POSIX_SPAWN_SETSIGMASK))

        var id: pid_t = 0
        let status = Self.withCStrings([executable] + arguments) { arguments in
            Self.withCStrings(environment.map { "\($0.key)=\($0.value)" }) { environment in
                LoopbackSocket.spawning.withLock { _ in
                    posix_spawn(&id, executable, &actions, &attributes, arguments, environment)
                }
            }
        }
        if let output { close(output) }
        guard status == 0 else { throw TestFailure("\(executable) cannot be started: \(status)") }
        self.id = id
    }

    deinit { end() }

    private static func withCStrings<Result>(
        _ texts: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
    ) -> Result {
        let pointers: [UnsafeMutablePointer<CChar>?] = texts.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        return body(pointers)
    }

    /// The termination; nil while the process runs.
    func poll() -> Termination? {
        termination.withLock { termination in
            if termination == nil { termination = Self.reap(id, options: WNOHANG) }
            return termination
        }
    }

    var isRunning: Bool { poll() == nil }

    private static func reap(_ id: pid_t, options: Int32) -> Termination? {
        var status: Int32 = 0
        var result: pid_t = -1
        repeat { result = waitpid(id, &status, options) } while result < 0 && errno == EINTR
        guard result == id else { return nil }
        let signal = status & 0x7F
        return signal == 0 ? .exited((status >> 8) & 0xFF) : .signaled(signal)
    }

    /// Sends a signal, unless the process has ended: its id may then belong to another process.
    func signal(_ number: Int32) {
        termination.withLock { termination in
            if termination == nil { termination = Self.reap(id, options: WNOHANG) }
            if termination == nil { kill(id, number) }
        }
    }

    /// Waits until the process has ended by itself.
    func wait(within limit: Duration = .seconds(90)) async throws -> Termination {
        do {
            return try await eventually("process \(id) ends", within: limit) { self.poll() }
        } catch let failure as TestFailure {
            // Adds the output of the process.
            throw TestFailure("\(failure)\n\(output.suffix(4000))\n\(errors.suffix(4000))")
        }
    }

    /// Kills the process if it still runs, and waits.
    func end() {
        termination.withLock { termination in
            guard termination == nil else { return }
            if endsGently {
                kill(id, SIGTERM)
                for _ in 0..<500 where termination == nil {
                    usleep(10_000)
                    termination = Self.reap(id, options: WNOHANG)
                }
                if termination != nil { return }
            }
            kill(id, SIGKILL)
            termination = Self.reap(id, options: 0)
        }
    }

    var output: String { Self.text(outputPath) }
    var errors: String { Self.text(errorPath) }

    private static func text(_ path: String) -> String {
        String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
    }
}

enum Termination: Hashable, Sendable {
    case exited(Int32)
    case signaled(Int32)
}
