internal import Foundation
internal import KedgeClient
internal import KedgeModel

/// Runs transfers to their end, shows them, and says how it went.
struct TransferRun {
    let client: TransferClient
    let options: ClientOptions
    /// What is done with each transfer that ended, before it is told.
    var inspect: @Sendable (TransferSnapshot, ProgressDisplay) async throws -> Void = { _, _ in }

    /// Files taken up at a time; the client moves the bytes of fewer, and the others wait their turn.
    private static let maxTakenUpCount = 64

    /// What there is to do for one name.
    enum Start: Sendable {
        case run(TransferID)
        /// An earlier command did it.
        case finished(TransferSnapshot)
    }

    /// Adds and runs the transfers; each is its own, and one that fails leaves the others alone.
    ///
    /// - Parameters:
    ///   - names: What to call each one in messages, in order.
    ///   - begin: Adds one by its position.
    /// - Throws: ``CommandFailure`` with the exit status when not all completed.
    func callAsFunction(
        _ names: [String],
        begin: @escaping @Sendable (Int, ProgressDisplay) async throws -> Start
    ) async throws {
        let display = ProgressDisplay(
            isJSON: options.json, isQuiet: options.quiet, isLogging: options.verbose)
        let client = client
        // Both are awaited below; a signal cancels the first, its end the second.
        let work = Task { await runAll(names, begin, display) }
        let watcher = Task { await display.watch(client) }
        let interruption = Interruption {
            // Ends with the runs, which return once their progress is saved. Only then are those
            // canceled that have not begun: no run is left early.
            Task {
                do {
                    try await client.suspendAll()
                } catch {
                    // What was confirmed is recorded already; the runs end with the process.
                    StandardError.write("kedge: \(printable(String(describing: error)))\n")
                }
                work.cancel()
            }
        }
        let outcomes = await work.value
        watcher.cancel()
        await watcher.value
        try await reporting { try await client.close() }
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

    /// Takes the names up in order and tells each outcome as soon as it and those before it are known:
    /// so the ids stand in the order of the names.
    private func runAll(
        _ names: [String],
        _ begin: @escaping @Sendable (Int, ProgressDisplay) async throws -> Start,
        _ display: ProgressDisplay
    ) async -> [Outcome] {
        await withTaskGroup(of: (Int, Outcome).self) { group in
            var outcomes = [Outcome?](repeating: nil, count: names.count)
            var toldCount = 0
            var rest = names.indices[...]
            func takeUpNext() {
                guard !group.isCancelled, let position = rest.popFirst() else { return }
                group.addTask { (position, await run(position, names[position], begin, display)) }
            }
            for _ in 0..<Self.maxTakenUpCount { takeUpNext() }
            for await (position, outcome) in group {
                outcomes[position] = outcome
                while toldCount < names.count, let next = outcomes[toldCount] {
                    report(next, display)
                    toldCount += 1
                }
                takeUpNext()
            }
            // Those that a signal kept from beginning have no outcome.
            for case let outcome? in outcomes[toldCount...] { report(outcome, display) }
            return outcomes.map { $0 ?? .stopped }
        }
    }

    private func run(
        _ position: Int, _ name: String,
        _ begin: @Sendable (Int, ProgressDisplay) async throws -> Start,
        _ display: ProgressDisplay
    ) async -> Outcome {
        do {
            switch try await begin(position, display) {
            case .finished(let snapshot):
                return .ended(snapshot)
            case .run(let id):
                display.add(try await client.transfer(id))
                let snapshot = try await client.run(id)
                try await inspect(snapshot, display)
                return .ended(snapshot)
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

    private func report(_ outcome: Outcome, _ display: ProgressDisplay) {
        switch outcome {
        case .ended(let snapshot):
            display.finish(snapshot, output: result(snapshot), complaint: complaint(snapshot))
        case .refused(let name, let error):
            let message = printable(error.description)
            let line = RefusedLine(
                // A download is named by its URL here, which may have a password or a signature.
                name: URLSecrets.hidden(in: name), errorCode: error.code,
                message: error.explanation ?? error.code.facts.sentence)
            display.tell(
                output: options.json ? JSONLine.encode(line) : nil,
                complaint: "kedge: \(printable(name)): \(message)")
        case .stopped:
            break
        }
    }

    /// What goes to standard output; nil for nothing.
    private func result(_ snapshot: TransferSnapshot) -> String? {
        if options.json { return JSONLine.text(.result, snapshot) }
        guard snapshot.state == .completed else { return nil }
        let text =
            snapshot.direction == .upload
            ? snapshot.remoteFileID?.text ?? snapshot.uploadURL ?? "" : snapshot.path
        return (StandardOutput.isTerminal ? printable(text) : text) + "\n"
    }

    /// What goes wrong, for a person; nil for nothing. What a signal stopped is told by the hint.
    private func complaint(_ snapshot: TransferSnapshot) -> String? {
        // Queued after its run: the server was waited for as long as was asked.
        let hasGivenUp = snapshot.state == .queued && snapshot.errorCode != nil
        let isTold =
            Outcome.ended(snapshot).isUnfinished && snapshot.pauseReason != .user && !hasGivenUp
        guard snapshot.state != .completed, !isTold else { return nil }
        return "kedge: \(printable(snapshot.name)): \(printable(snapshot.message))"
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

/// How it went with one of the names.
private enum Outcome: Sendable {
    case ended(TransferSnapshot)
    case refused(String, TransferError)
    /// A signal came before there was a transfer to run.
    case stopped

    var isCompleted: Bool {
        if case .ended(let snapshot) = self { return snapshot.state == .completed }
        return false
    }

    /// True when there is something left to go on with.
    var isUnfinished: Bool {
        switch self {
        case .ended(let snapshot): !snapshot.state.isFinal
        case .refused: false
        case .stopped: true
        }
    }

    var id: TransferID? {
        if case .ended(let snapshot) = self { return snapshot.id }
        return nil
    }

    var exitStatus: Int32 {
        switch self {
        case .ended(let snapshot) where snapshot.state == .completed: ExitStatus.success
        case .ended(let snapshot):
            snapshot.errorCode?.facts.exitStatus ?? ExitStatus.failure
        case .refused(_, let error): error.code.facts.exitStatus
        case .stopped: ExitStatus.failure
        }
    }
}
