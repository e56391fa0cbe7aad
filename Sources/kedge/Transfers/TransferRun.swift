internal import Foundation
internal import KedgeClient
internal import KedgeModel

/// Runs transfers to their end, shows them, and says how it went.
struct TransferRun {
    let client: TransferClient
    let options: ClientOptions

    /// Adds and runs the transfers; each is its own, and one that fails leaves the others alone.
    ///
    /// - Parameters:
    ///   - names: What to call each one in messages, in order.
    ///   - enqueue: Adds one by its position.
    /// - Throws: ``CommandFailure`` with the exit status when not all completed.
    func callAsFunction(
        _ names: [String], enqueue: @escaping @Sendable (Int) async throws -> TransferID
    ) async throws {
        let display = ProgressDisplay(isJSON: options.json, isQuiet: options.quiet)
        let client = client
        let interruption = Interruption {
            // Ends with the runs below, which return once their progress is saved.
            Task {
                do {
                    try await client.suspendAll()
                } catch {
                    // What was confirmed is recorded already; the runs end with the process.
                    StandardError.write("kedge: \(error)\n")
                }
            }
        }
        let outcomes = await withTaskGroup(of: (Int, Outcome).self) { group in
            for position in names.indices {
                group.addTask {
                    (position, await run(position, names[position], enqueue, display))
                }
            }
            var all: [Int: Outcome] = [:]
            for await (position, outcome) in group { all[position] = outcome }
            return names.indices.compactMap { all[$0] }
        }
        for outcome in outcomes { report(outcome, display) }
        try await reporting { try await client.close() }
        if let status = interruption.exitStatus {
            display.say("Saved. To go on: \(Self.commandLine)")
            throw CommandFailure(nil, exitStatus: status)
        }
        try conclude(outcomes)
    }

    private enum Outcome: Sendable {
        case ended(TransferSnapshot)
        case refused(String, TransferError)

        var isCompleted: Bool {
            if case .ended(let snapshot) = self { return snapshot.state == .completed }
            return false
        }

        var exitStatus: Int32 {
            switch self {
            case .ended(let snapshot) where snapshot.state == .completed: ExitStatus.success
            case .ended(let snapshot):
                snapshot.errorCode?.facts.exitStatus ?? ExitStatus.failure
            case .refused(_, let error): error.code.facts.exitStatus
            }
        }
    }

    private func run(
        _ position: Int, _ name: String,
        _ enqueue: @Sendable (Int) async throws -> TransferID, _ display: ProgressDisplay
    ) async -> Outcome {
        do {
            let id = try await enqueue(position)
            let snapshots = client.snapshots(of: id)
            // Cancelled and awaited below, when the run has ended: the client may be closed next.
            let watcher = Task {
                for try await snapshot in snapshots { display.show(snapshot) }
            }
            let last = try await running(id, beside: watcher)
            display.show(last)
            return .ended(last)
        } catch let error as TransferError {
            return .refused(name, error)
        } catch {
            return .refused(
                name, TransferError(.internalError, operation: "run", cause: error))
        }
    }

    private func running(
        _ id: TransferID, beside watcher: Task<Void, any Error>
    ) async throws -> TransferSnapshot {
        do {
            let last = try await client.run(id)
            watcher.cancel()
            _ = await watcher.result
            return last
        } catch {
            watcher.cancel()
            _ = await watcher.result
            throw error
        }
    }

    private func report(_ outcome: Outcome, _ display: ProgressDisplay) {
        switch outcome {
        case .ended(let snapshot):
            if options.json { StandardOutput.write(JSONLine.text(.result, snapshot)) }
            if snapshot.state != .completed {
                display.say("kedge: \(snapshot.name): \(snapshot.message)", isError: true)
            } else if !options.json {
                let result =
                    snapshot.direction == .upload
                    ? snapshot.remoteFileID?.text ?? "" : snapshot.path
                StandardOutput.write(result + "\n")
            }
        case .refused(let name, let error):
            if options.json {
                StandardOutput.write(
                    JSONLine.encode(RefusedLine(name: name, errorCode: error.code)))
            }
            StandardError.write("kedge: \(name): \(error)\n")
        }
    }

    private struct RefusedLine: Encodable {
        var version = 1
        var type = JSONLine.Kind.result
        var name: String
        var state = TransferState.failed
        var errorCode: ErrorCode
    }

    private func conclude(_ outcomes: [Outcome]) throws {
        let failed = outcomes.filter { !$0.isCompleted }
        guard let first = failed.first else { return }
        let isMixed = failed.count < outcomes.count
        throw CommandFailure(
            nil, exitStatus: isMixed ? ExitStatus.someFailed : first.exitStatus)
    }

    /// The command as it was typed, quoted for a shell.
    private static var commandLine: String {
        CommandLine.arguments.map { argument in
            let isPlain = argument.allSatisfy {
                $0.isASCII && ($0.isLetter || $0.isNumber || "-_./:=,@%+".contains($0))
            }
            return isPlain && !argument.isEmpty
                ? argument : "'" + argument.replacingOccurrences(of: "'", with: "'\\''") + "'"
        }.joined(separator: " ")
    }
}
