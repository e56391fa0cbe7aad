internal import Foundation
internal import KedgeClient
internal import KedgeModel

/// Runs transfers to their end, shows their progress, and reports the results.
struct TransferRun {
    let client: TransferClient
    let options: ClientOptions
    /// Inspects each finished transfer before its result is reported.
    var inspect: @Sendable (TransferSnapshot, ProgressDisplay) async throws -> Void = { _, _ in }

    /// Whether the output names the file beside its id.
    var namesFiles = false

    /// Limit of files in progress; the client moves the bytes of fewer, and the others wait. All of
    /// them have a record, which survives a kill.
    private static let maxTakenUpCount = 2000
    /// Limit of files that are looked at and added at the same time: each may be open and hashed.
    private static let maxBeginningCount = 64

    /// The work to do for one name.
    enum Start: Sendable {
        case run(TransferID)
        /// An earlier command has completed it.
        case finished(TransferSnapshot)
        /// The bytes are where they should be, also without a record of their transfer.
        case present(PresentFile)
    }

    /// Adds and runs the transfers. They are independent: a failed one does not affect the others.
    ///
    /// - Parameters:
    ///   - names: The name of each transfer in messages, in order.
    ///   - byteCounts: Size of each file, where known.
    ///   - begin: Adds the transfer at a position.
    /// - Throws: ``CommandFailure`` with the exit status unless all completed.
    func callAsFunction(
        _ names: [String], byteCounts: [Int64?]? = nil,
        begin: @escaping @Sendable (Int, ProgressDisplay) async throws -> Start
    ) async throws {
        let display = ProgressDisplay(
            isJSON: options.json, isQuiet: options.quiet, isLogging: options.isLoggingToTerminal,
            isColored: options.color.isOn)
        display.expect(names, byteCounts ?? names.map { _ in nil })
        let client = client
        // Both are awaited below. A signal cancels the first; its end cancels the second.
        let work = Task { await runAll(names, begin, display) }
        let watcher = Task { await display.watch(client) }
        let limits = Task { await client.followBandwidthRequests() }
        let interruption = Interruption { _ in
            // Ends with the runs, which return once their progress is saved. Only then is `work`
            // canceled, which stops the transfers that have not begun: no run is interrupted early.
            Task {
                do {
                    try await client.suspendAll()
                } catch {
                    // Confirmed progress is already recorded; the runs end with the process.
                    StandardError.write("kedge: \(printable(String(describing: error)))\n")
                }
                work.cancel()
            }
        }
        let outcomes = await work.value
        watcher.cancel()
        limits.cancel()
        await watcher.value
        await limits.value
        try await reporting { try await client.close() }
        display.conclude()
        let unfinished = outcomes.filter(\.isUnfinished)
        if let status = interruption.exitStatus, let first = unfinished.first {
            let hint = ResumeHint(
                arguments: CommandLine.arguments,
                unfinished: unfinished.count == 1 ? first.id : nil)
            display.say(hint.text)
            throw CommandFailure(nil, exitStatus: status)
        }
        try conclude(outcomes)
    }

    /// Starts the names in order. Reports each outcome once it and those before it are known, so
    /// that the ids appear in the order of the names.
    private func runAll(
        _ names: [String],
        _ begin: @escaping @Sendable (Int, ProgressDisplay) async throws -> Start,
        _ display: ProgressDisplay
    ) async -> [Outcome] {
        let turns = Turns(count: Self.maxBeginningCount)
        return await withTaskGroup(of: (Int, Outcome).self) { group in
            var outcomes = [Outcome?](repeating: nil, count: names.count)
            var toldCount = 0
            var rest = names.indices[...]
            func takeUpNext() {
                guard !group.isCancelled, let position = rest.popFirst() else { return }
                group.addTask {
                    (position, await run(position, names[position], turns, begin, display))
                }
            }
            for _ in 0..<Self.maxTakenUpCount { takeUpNext() }
            for await (position, outcome) in group {
                outcomes[position] = outcome
                while toldCount < names.count, let next = outcomes[toldCount] {
                    report(next, of: names[toldCount], display)
                    toldCount += 1
                }
                takeUpNext()
            }
            // Transfers that a signal kept from starting have no outcome.
            for (name, outcome) in zip(names, outcomes).dropFirst(toldCount) {
                if let outcome { report(outcome, of: name, display) }
            }
            return outcomes.map { $0 ?? .stopped }
        }
    }

    private func run(
        _ position: Int, _ name: String, _ turns: Turns,
        _ begin: @Sendable (Int, ProgressDisplay) async throws -> Start,
        _ display: ProgressDisplay
    ) async -> Outcome {
        do {
            switch try await turns.during({ try await begin(position, display) }) {
            case .finished(let snapshot):
                return .ended(snapshot, ending: "already there")
            case .present(let file):
                return .present(file)
            case .run(let id):
                display.add(try await client.transfer(id))
                let snapshot = try await client.run(id)
                try await inspect(snapshot, display)
                return .ended(
                    snapshot, ending: snapshot.usedStoredBytes ? "already there" : nil)
            }
        } catch let error as TransferError {
            return Task.isCancelled ? .stopped : .refused(name, error)
        } catch is CancellationError {
            return .stopped
        } catch {
            return .refused(
                name, TransferError(.internalError, operation: "run", cause: error))
        }
    }

    private func report(_ outcome: Outcome, of name: String, _ display: ProgressDisplay) {
        switch outcome {
        case .ended(let snapshot, let ending):
            display.finish(
                snapshot, ending: ending, output: result(snapshot, name),
                complaint: complaint(snapshot, name))
        case .present(let file):
            display.pass(
                file.byteCount, output: options.json ? file.json(name) : output(file.output, name))
        case .refused(let name, let error):
            let message = printable(error.description)
            let line = RefusedLine(
                // A download is named by its URL here, which may contain a password or a signature.
                name: URLSecrets.hidden(in: name), errorCode: error.code,
                message: error.explanation ?? error.code.facts.sentence)
            display.refuse(
                name, output: options.json ? JSONLine.encode(line) : nil,
                complaint: "kedge: \(printable(name)): \(message)")
        case .stopped:
            break
        }
    }

    /// Returns the text for standard output; nil for none.
    private func result(_ snapshot: TransferSnapshot, _ name: String) -> String? {
        if options.json { return JSONLine.text(.result, snapshot) }
        guard snapshot.state == .completed else { return nil }
        let text =
            snapshot.direction == .upload
            ? snapshot.remoteFileID?.text ?? snapshot.uploadURL.map {
                ServiceLink.removed(from: $0)
            } ?? ""
            : snapshot.path
        return output(text, name)
    }

    private func output(_ text: String, _ name: String) -> String {
        let line = namesFiles ? "\(text)  \(name)" : text
        // Elsewhere the path is data, except that one line is one file.
        let isLine = !line.contains("\n")
        return (StandardOutput.isTerminal || !isLine ? printable(line) : line) + "\n"
    }

    /// Returns the message for a failed transfer; nil for none, or if a signal stopped it.
    private func complaint(_ snapshot: TransferSnapshot, _ name: String) -> String? {
        // Queued after its run: the wait for the server has timed out.
        let hasGivenUp = snapshot.state == .queued && snapshot.errorCode != nil
        let isTold =
            Outcome.ended(snapshot, ending: nil).isUnfinished && snapshot.pauseReason != .user
            && snapshot.pauseReason != .signInNeeded && !hasGivenUp
        guard snapshot.state != .completed, !isTold else { return nil }
        // Among many files, names alone may be the same.
        let shown = namesFiles ? name : snapshot.name
        return "kedge: \(printable(shown)): \(printable(snapshot.message))"
    }

    private struct RefusedLine: Encodable {
        var version = 1
        var type = JSONLine.Kind.result
        var name: String
        var state = TransferState.failed
        var errorCode: ErrorCode
        var message: String
    }

    private func conclude(_ outcomes: [Outcome]) throws {
        let failed = outcomes.filter { !$0.isCompleted }
        guard let first = failed.first else { return }
        let isMixed = failed.count < outcomes.count
        throw CommandFailure(
            nil, exitStatus: isMixed ? ExitStatus.someFailed : first.exitStatus)
    }
}

/// Limits how many calls run at the same time, in the order of the calls.
private actor Turns {
    private var freeCount: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(count: Int) { freeCount = count }

    /// Makes the call when it is its turn. Throws at once then if the task is canceled.
    nonisolated func during<Result: Sendable>(
        _ call: @Sendable () async throws -> Result
    ) async throws -> Result {
        await take()
        do {
            try Task.checkCancellation()
            let result = try await call()
            await give()
            return result
        } catch {
            await give()
            throw error
        }
    }

    private func take() async {
        guard freeCount == 0 else {
            freeCount -= 1
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    private func give() {
        if waiting.isEmpty {
            freeCount += 1
        } else {
            waiting.removeFirst().resume()
        }
    }
}

/// A file that need not be transferred: the server has it, or the destination is it already.
struct PresentFile: Sendable {
    var direction: TransferDirection
    var id: FileID
    var byteCount: Int64
    var digest: SHA256Digest
    /// Text for standard output: the id or the path.
    var output: String

    private struct Line: Encodable {
        var version = 1
        var type = JSONLine.Kind.result
        var direction: TransferDirection
        var name: String
        var state = TransferState.completed
        var bytesTransferred: Int64
        var size: Int64
        var remoteFileId: FileID
        var fileHashSha256: SHA256Digest
        var verification = Verification.sha256
        var path: String?
        var message = "Already there."
    }

    func json(_ name: String) -> String {
        JSONLine.encode(
            Line(
                direction: direction, name: name, bytesTransferred: byteCount, size: byteCount,
                remoteFileId: id, fileHashSha256: digest,
                path: direction == .download ? output : nil))
    }
}

/// The result for one of the names.
private enum Outcome: Sendable {
    /// - Parameter ending: Text in place of `done`.
    case ended(TransferSnapshot, ending: String?)
    case refused(String, TransferError)
    case present(PresentFile)
    /// A signal came before the transfer was added.
    case stopped

    var isCompleted: Bool {
        return switch self {
        case .ended(let snapshot, _): snapshot.state == .completed
        case .present: true
        case .refused, .stopped: false
        }
    }

    /// Whether the transfer can be resumed.
    var isUnfinished: Bool {
        switch self {
        case .ended(let snapshot, _): !snapshot.state.isFinal
        case .refused, .present: false
        case .stopped: true
        }
    }

    var id: TransferID? {
        if case .ended(let snapshot, _) = self { return snapshot.id }
        return nil
    }

    var exitStatus: Int32 {
        switch self {
        case .ended(let snapshot, _) where snapshot.state == .completed: ExitStatus.success
        case .ended(let snapshot, _):
            snapshot.errorCode?.facts.exitStatus ?? ExitStatus.failure
        case .refused(_, let error): error.code.facts.exitStatus
        case .present: ExitStatus.success
        case .stopped: ExitStatus.failure
        }
    }
}
