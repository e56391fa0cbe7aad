internal import Glibc

/// A program that this one started, and kills by its id when this one fails or is stopped.
final class BenchProcess: Sendable {
    let id: pid_t
    private let name: String
    private let ended = SharedValue<Outcome?>(nil)

    /// The status of an ended process, and its user and system time.
    struct Outcome: Sendable {
        let status: Int32
        let cpuSeconds: Double
    }

    /// Starts a program with no part of this one's environment but the search path.
    ///
    /// - Parameters:
    ///   - output: File for its standard output; nil puts it into the log.
    ///   - log: File of its standard error.
    init(
        _ executable: String, _ arguments: [String], home: String, output: String? = nil,
        log: String
    ) throws {
        name = executable.split(separator: "/").last.map(String.init) ?? executable
        id = try LiveChildren.start {
            try Self.spawn(
                [executable] + arguments,
                environment: [
                    "PATH=\(Executable.searchPath.joined(separator: ":"))", "HOME=\(home)",
                    "XDG_STATE_HOME=\(home)/state",
                ], output: output ?? log, log: log)
        }
    }

    /// The outcome if it has ended.
    var outcome: Outcome? {
        ended.change { ended in
            if let ended { return ended }
            var status: Int32 = 0
            var usage = rusage()
            guard wait4(id, &status, WNOHANG, &usage) == id else { return nil }
            LiveChildren.forget(id)
            ended = Outcome(
                status: status, cpuSeconds: usage.ru_utime.seconds + usage.ru_stime.seconds)
            return ended
        }
    }

    /// Waits for the end, and polls every millisecond.
    ///
    /// - Parameter watch: Called every ten milliseconds while it lives.
    /// - Throws: ``BenchFailure`` after `limit` seconds; the process is then killed.
    func wait(limit: Double, watch: () -> Void = {}) throws -> Outcome {
        let began = ContinuousClock.now
        var rounds = 0
        while true {
            if let outcome { return outcome }
            if elapsedSeconds(since: began) > limit {
                kill(id, SIGKILL)
                throw BenchFailure("\(name) did not end within \(Int(limit)) s")
            }
            if rounds % 10 == 0 { watch() }
            rounds += 1
            pause(seconds: 0.001)
        }
    }

    /// Asks the program to end, and waits for it.
    ///
    /// - Parameter exitStatuses: The statuses of such a program that was asked to end.
    /// - Throws: ``BenchFailure`` when it takes too long or ends otherwise.
    func stop(exitStatuses: Set<Int32> = [0]) throws {
        if outcome == nil { kill(id, SIGTERM) }
        let outcome = try wait(limit: 60)
        // The exit status is the second byte; the first is the signal of a process that was killed.
        guard outcome.status & 0xFF == 0, exitStatuses.contains(outcome.status >> 8) else {
            throw BenchFailure("\(name) ended with status \(outcome.status)")
        }
    }

    deinit {
        if outcome == nil {
            kill(id, SIGKILL)
            // Reaps the process; a killed one ends at once.
            _ = try? wait(limit: 10)
        }
    }

    private static func spawn(
        _ words: [String], environment: [String], output: String, log: String
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        let flags = O_WRONLY | O_CREAT | O_APPEND
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output, flags, 0o644)
        posix_spawn_file_actions_addopen(&actions, 2, log, flags, 0o644)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // This program blocks some signals, which its children must receive.
        var none = sigset_t()
        sigemptyset(&none)
        var broken = sigset_t()
        sigemptyset(&broken)
        sigaddset(&broken, SIGPIPE)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &broken)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var arguments = words.map { strdup($0) } + [nil]
        var variables = environment.map { strdup($0) } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var id = pid_t()
        let status = posix_spawn(&id, words[0], &actions, &attributes, &arguments, &variables)
        guard status == 0 else {
            throw BenchFailure("start \(words[0]): \(String(cString: strerror(status)))")
        }
        return id
    }
}

extension timeval {
    fileprivate var seconds: Double { Double(tv_sec) + Double(tv_usec) / 1_000_000 }
}
