internal import Foundation
internal import KedgeClient
internal import KedgeLocks
internal import KedgeModel

/// A transfer from standard input or to standard output.
struct StreamCommand: Sendable {
    let client: TransferClient
    let options: ClientOptions
    /// Name in messages.
    let name: String

    private struct ResultLine: Encodable {
        var version = 1
        var type = JSONLine.Kind.result
        var direction = TransferDirection.upload
        var name: String
        var state = TransferState.completed
        var bytesTransferred: Int64
        var size: Int64
        var remoteFileId: FileID?
        var fileHashSha256: SHA256Digest
        var verification: Verification
    }

    /// Uploads standard input, or the output of a command.
    func upload(_ stream: StreamUploadOptions, producer arguments: [String]) async throws {
        let producer = try arguments.isEmpty ? nil : Producer(arguments)
        let input = producer?.output ?? STDIN_FILENO
        let progress = StreamProgress(name: name, total: stream.expectedSize, options: options)
        let result = try await running(progress) {
            do {
                return try await client.uploadStream(
                    stream, onProgress: { progress.update($0) }, onWait: { progress.say($0) },
                    confirmEnd: { try await producer?.requireSuccess() },
                    read: { try Self.read(input, into: $0) })
            } catch {
                producer?.end()
                throw error
            }
        }
        let line = ResultLine(
            name: stream.fileName, bytesTransferred: result.byteCount, size: result.byteCount,
            remoteFileId: result.fileID, fileHashSha256: result.sha256,
            verification: result.verification)
        StandardOutput.write(
            options.json ? JSONLine.encode(line) : "\(result.fileID?.text ?? "")\n")
    }

    /// Downloads to standard output.
    func download(expecting digest: SHA256Digest?) async throws {
        let progress = StreamProgress(name: name, total: nil, options: options)
        let written = Mutex<Int64>(0)
        let result = try await running(progress) {
            let reference: RemoteReference =
                name.contains("://")
                ? .url(name) : .file(try await RemoteID.file(name, client))
            return try await client.downloadStream(
                reference, expectedSHA256: digest,
                onStart: { size, isVerified in
                    progress.setTotal(size)
                    guard !isVerified else { return }
                    progress.warn(
                        "The server announces no digests of parts: bytes are written unverified,"
                            + " and only the whole file is verified at the end, if its SHA-256 is"
                            + " known.")
                }, onWait: { progress.say($0) },
                write: { bytes in
                    try Self.write(bytes)
                    progress.update(
                        written.withLock {
                            $0 += Int64(bytes.count)
                            return $0
                        })
                })
        }
        if result.verification == .unverified {
            progress.warn("unverified, because no SHA-256 was known.")
        }
    }

    /// Runs a transfer until it ends or a signal cancels it.
    private func running(
        _ progress: StreamProgress, _ transfer: @escaping @Sendable () async throws -> StreamResult
    ) async throws -> StreamResult {
        // Ended below, like the transfer.
        let limits = Task { await client.followBandwidthRequests() }
        let work = Task { try await transfer() }
        let interruption = Interruption { _ in work.cancel() }
        do {
            let result = try await reporting { try await work.value }
            progress.end(result.byteCount)
            limits.cancel()
            await limits.value
            try await reporting { try await client.close() }
            return result
        } catch {
            limits.cancel()
            progress.clear()
            if let status = interruption.exitStatus {
                StandardError.write("Interrupted.\n")
                throw CommandFailure(nil, exitStatus: status)
            }
            throw error
        }
    }

    private static func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) throws -> Int {
        while true {
            let count = unsafe Foundation.read(descriptor, buffer.baseAddress, buffer.count)
            if count >= 0 { return count }
            if errno == EAGAIN {
                var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                _ = unsafe poll(&wait, 1, -1)
                continue
            }
            guard errno != EINTR else { continue }
            throw TransferError(
                .fileTruncated, operation: "read",
                explanation: "The input cannot be read: \(unsafe String(cString: strerror(errno)))."
            )
        }
    }

    private static func write(_ bytes: UnsafeRawBufferPointer) throws {
        var done = 0
        while done < bytes.count {
            let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[done...])
            let count = unsafe Foundation.write(STDOUT_FILENO, rest.baseAddress, rest.count)
            if count > 0 {
                done += count
            } else if errno == EAGAIN {
                var wait = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&wait, 1, -1)
            } else if errno == EPIPE {
                // The reader has gone: it said itself why, as far as that is an error.
                throw CommandFailure(nil, exitStatus: 128 + SIGPIPE)
            } else if errno != EINTR {
                throw TransferError(
                    errno == ENOSPC ? .diskFull : .usage, operation: "write",
                    explanation: "Standard output takes no more bytes: "
                        + "\(unsafe String(cString: strerror(errno))).")
            }
        }
    }
}

/// A command whose output is uploaded.
private final class Producer: Sendable {
    /// End of the pipe from which its output is read.
    let output: Int32
    private let command: String
    private let process: Process
    private let termination = Termination()

    /// The status of the process, once it has ended.
    private actor Termination {
        private var status: (Int32, Process.TerminationReason)?
        private var waiting: CheckedContinuation<Void, Never>?

        func end(_ status: Int32, _ reason: Process.TerminationReason) {
            self.status = (status, reason)
            stopWaiting()
        }

        /// The status; nil if the task was canceled first. Awaited once.
        var value: (Int32, Process.TerminationReason)? {
            get async {
                guard status == nil else { return status }
                await withTaskCancellationHandler {
                    await withCheckedContinuation { continuation in
                        if Task.isCancelled { return continuation.resume() }
                        waiting = continuation
                    }
                } onCancel: {
                    Task { await stopWaiting() }
                }
                return status
            }
        }

        private func stopWaiting() {
            waiting?.resume()
            waiting = nil
        }
    }

    /// Starts the command. It inherits standard input and standard error.
    init(_ arguments: [String]) throws {
        command = arguments.joined(separator: " ")
        let pipe = Pipe()
        process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["--"] + arguments
        process.standardOutput = pipe
        let termination = termination
        process.terminationHandler = { process in
            let (status, reason) = (process.terminationStatus, process.terminationReason)
            // The actor's only other user waits for it.
            Task { await termination.end(status, reason) }
        }
        output = dup(pipe.fileHandleForReading.fileDescriptor)
        do {
            try process.run()
        } catch {
            throw CommandFailure("kedge: \(arguments[0]) cannot be started: \(error)")
        }
    }

    /// Waits for the end of the command.
    ///
    /// - Throws: `FILE_TRUNCATED` unless it exited with 0.
    func requireSuccess() async throws {
        guard let (status, reason) = await termination.value else { throw CancellationError() }
        guard reason != .exit || status != 0 else { return }
        guard reason != .exit || status != 127 else {
            throw TransferError(
                .usage, operation: "upload", resource: command,
                explanation: "The command was not found: \(command).")
        }
        let end = reason == .exit ? "exited with status \(status)" : "ended by signal \(status)"
        throw TransferError(
            .fileTruncated, operation: "upload", resource: command,
            explanation: "The command \(end): \(command).")
    }

    /// Asks the command to end. A read of its output may still be blocked: the descriptor stays.
    func end() {
        if process.isRunning { process.terminate() }
    }
}

/// One line about a stream: how much has moved, and how fast.
private final class StreamProgress: Sendable {
    private struct State {
        var total: Int64?
        var shown = ContinuousClock.now
        var isShown = false
        var count: Int64 = 0
    }

    private let name: String
    private let isQuiet: Bool
    private let isTerminal: Bool
    private let began = ContinuousClock.now
    private let state: Mutex<State>

    init(name: String, total: Int64?, options: ClientOptions) {
        self.name = printable(name)
        isQuiet = options.quiet
        isTerminal = StandardError.isTerminal
        state = Mutex(State(total: total))
    }

    func setTotal(_ total: Int64?) { state.withLock { $0.total = total } }

    func update(_ count: Int64) {
        guard !isQuiet else { return }
        state.withLock { state in
            state.count = count
            let interval: Duration = isTerminal ? .milliseconds(200) : .seconds(10)
            guard state.shown.duration(to: .now) >= interval else { return }
            state.shown = .now
            show(&state)
        }
    }

    func say(_ message: String) {
        guard !isQuiet else { return }
        warn(message)
    }

    /// Writes a message, also when quiet.
    func warn(_ message: String) {
        clear()
        StandardError.write("kedge: \(name): \(printable(message))\n")
    }

    func end(_ count: Int64) {
        clear()
        guard !isQuiet else { return }
        StandardError.write(
            "\(name)  \(ByteText.size(count))  done in \(ByteText.time(began.duration(to: .now)))\n"
        )
    }

    func clear() {
        state.withLock { state in
            guard state.isShown else { return }
            StandardError.write("\r\u{1B}[K")
            state.isShown = false
        }
    }

    private func show(_ state: inout State) {
        let seconds = began.duration(to: .now) / .seconds(1)
        var parts = [TerminalText.fitted(name, to: 20)]
        if let total = state.total, total > 0 {
            parts.append(TransferBar.percentage(state.count, of: total))
        }
        parts.append(ByteText.size(state.count))
        parts.append(ByteText.rate(Double(state.count) / max(seconds, 0.001)))
        let text = parts.joined(separator: "  ")
        guard isTerminal else { return StandardError.write(text + "\n") }
        let line = TerminalText.prefix(text, cells: StandardError.columnCount - 1)
        StandardError.write("\r\(line)\u{1B}[K")
        state.isShown = true
    }
}
