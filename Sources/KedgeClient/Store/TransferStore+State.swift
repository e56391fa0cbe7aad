internal import GRDB
package import KedgeModel

extension TransferStore {
    /// Bytes begin to move: `queued` becomes the running state, and what was waited for is forgotten.
    package func start(_ lease: Lease) async throws {
        try await update(lease, operation: "start") { change in
            try change.apply(.start)
            change.clearError()
        }
    }

    /// The worker waits and will go on by itself; the code and the message say for what (R104).
    package func wait(
        _ lease: Lease, code: ErrorCode, message: String, answer: ServerAnswer?,
        attempt: FailedAttempt? = nil
    ) async throws {
        try await update(lease, operation: "wait") { change in
            try change.apply(.wait)
            change.setError(code, message, attempt: attempt)
            change.setAnswer(answer)
        }
    }

    /// Notes a try that failed and will be repeated.
    package func recordAttempt(
        _ lease: Lease, chunk: Int?, code: ErrorCode, message: String, answer: ServerAnswer?,
        attempt: FailedAttempt? = nil
    ) async throws {
        try await update(lease, operation: "record attempt") { change in
            change.setError(code, message, attempt: attempt)
            change.setAnswer(answer)
            if let chunk { try change.countAttempts(1, ofChunk: chunk, in: lease.id) }
        }
    }

    /// The transfer ends with an error that trying again by itself would not cure (R35, R107).
    package func fail(
        _ lease: Lease, code: ErrorCode, message: String, answer: ServerAnswer?,
        attempt: FailedAttempt? = nil
    ) async throws {
        try await update(lease, operation: "fail") { change in
            try change.apply(.fail)
            change.setError(code, message, attempt: attempt)
            change.setAnswer(answer)
            change.set("control", ControlCommand.none.rawValue)
            change.releaseOwner()
        }
    }

    /// The running process ends or a constraint is not met: the transfer pauses and is given back.
    package func pause(_ lease: Lease, reason: PauseReason) async throws {
        try await update(lease, operation: "pause") { change in
            try change.apply(.pause(reason))
            change.set("control", ControlCommand.none.rawValue)
            change.releaseOwner()
        }
    }

    /// The running process gave the transfer up for a person; the record stays.
    package func cancel(_ lease: Lease) async throws {
        try await update(lease, operation: "cancel") { change in
            try change.apply(.cancel)
            change.forgetSecrets()
            change.set("control", ControlCommand.none.rawValue)
            change.releaseOwner()
        }
    }

    /// The owner has understood a wish and carries it out now.
    package func acknowledgeControl(_ lease: Lease) async throws {
        try await update(lease, operation: "acknowledge control") { change in
            change.set("control", ControlCommand.none.rawValue)
            if try change.row.state == change.row.direction.runningState {
                try change.apply(.wait)
            }
        }
    }

    /// The file as a whole had another SHA-256 than expected; returns how often by now (R110, R119).
    package func recordIntegrityFailure(
        _ lease: Lease, message: String, answer: ServerAnswer?
    ) async throws -> Int {
        try await update(lease, operation: "record integrity failure") { change in
            let count = Int(change.row.integer("integrity_failure_count") ?? 0) + 1
            change.set("integrity_failure_count", count)
            change.setError(.integrityMismatch, message)
            change.setAnswer(answer)
            return count
        }
    }
}
