internal import Foundation
internal import KedgeFiles
internal import KedgeModel

/// A command of the settings that prints a token.
struct TokenCommand: Sendable {
    /// Line of a shell.
    let line: String
    /// Name or URL of the server, for messages.
    let server: String

    /// Limit of its time: enough to answer a question of a password manager.
    private static let timeout = Duration.seconds(60)
    /// Limit of its output, of which only the first line counts.
    private static let maxByteCount = 64 << 10

    /// Runs the command and returns the first line of its output.
    ///
    /// - Throws: ``CommandFailure`` if it fails, takes too long, or prints no token.
    func output() async throws -> String {
        // A thread of its own, which waits for the command.
        let pool = BlockingPool(threadCount: 1)
        return try await pool.run { try run() }
    }

    private func run() throws -> String {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", line]
        process.standardOutput = pipe
        // Standard input may be the data to upload.
        process.standardInput = FileHandle.nullDevice
        do {
            try process.run()
        } catch {
            throw failure("it cannot be started: \(error.localizedDescription)")
        }
        let deadline = ContinuousClock.now + Self.timeout
        let output = pipe.fileHandleForReading.fileDescriptor
        guard let bytes = read(output, until: deadline), hasEnded(process, before: deadline) else {
            // The group too, of which the process is the leader: its children may wait as well.
            kill(-process.processIdentifier, SIGKILL)
            kill(process.processIdentifier, SIGKILL)
            throw failure(
                "\(program) took longer than \(Self.timeout.components.seconds) s, and was ended")
        }
        let status = process.terminationStatus
        guard process.terminationReason == .exit else {
            throw failure("\(program) ended by signal \(status)")
        }
        guard status == 0 else { throw failure("\(program) exited with status \(status)") }
        let text = String(decoding: bytes, as: UTF8.self)
        let token = String(text.prefix { !$0.isNewline }).trimmingCharacters(in: .whitespaces)
        guard !token.isEmpty else { throw failure("\(program) printed no token") }
        return token
    }

    /// Name of the program, for messages. The other words may be secrets, and so may a first word
    /// with characters that are special to a shell.
    private var program: String {
        let word = line.drop(while: \.isWhitespace).prefix { !$0.isWhitespace }
        let isPlain = word.allSatisfy {
            $0.isASCII && ($0.isLetter || $0.isNumber || "-_./+".contains($0))
        }
        guard isPlain, let name = word.split(separator: "/").last else { return "the shell" }
        return String(name)
    }

    /// Reads to the end of the output; nil if it does not end in time.
    private func read(_ descriptor: Int32, until deadline: ContinuousClock.Instant) -> [UInt8]? {
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 4096)
        while true {
            let rest = ContinuousClock.now.duration(to: deadline)
            guard rest > .zero else { return nil }
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let milliseconds = Int32(rest / .milliseconds(1)) + 1
            // An interrupted wait begins again.
            guard unsafe poll(&entry, 1, milliseconds) > 0 else { continue }
            let count = unsafe Foundation.read(descriptor, &block, block.count)
            guard count != 0 else { return bytes }
            // The rest is no token.
            if count > 0, bytes.count < Self.maxByteCount { bytes += block[..<count] }
        }
    }

    private func hasEnded(_ process: Process, before deadline: ContinuousClock.Instant) -> Bool {
        while process.isRunning {
            guard ContinuousClock.now < deadline else { return false }
            usleep(5000)
        }
        return true
    }

    private func failure(_ reason: String) -> CommandFailure {
        CommandFailure(
            "kedge: the tokenCommand of \(server) failed: \(reason).", exitStatus: ExitStatus.usage)
    }
}
