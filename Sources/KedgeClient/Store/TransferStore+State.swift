internal import GRDB
package import KedgeModel

extension TransferStore {
    /// Moves a `queued` transfer to its running state and clears the error it waited for.
    package func start(_ lease: Lease) async throws {
        try await update(lease, operation: "start") { change in
            try change.apply(.start)
            change.clearError()
        }
    }

    /// Records that the worker waits and will continue by itself, and the reason.
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

    /// Records a failed try that will be repeated.
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

    /// Ends the transfer with an error that automatic retries would not cure.
    package func fail(
        _ lease: Lease, code: ErrorCode, message: String, answer: ServerAnswer?,
        attempt: FailedAttempt? = nil
    ) async throws {
        try await update(lease, operation: "fail") { change in
            try change.apply(.fail)
            change.setError(code, message, attempt: attempt)
            change.setAnswer(answer)
            change.setCommand(nil)
            change.releaseOwner()
        }
    }

    /// Pauses the transfer and releases its owner: the process ends, or a constraint is not met.
    package func pause(_ lease: Lease, reason: PauseReason) async throws {
        try await update(lease, operation: "pause") { change in
            try change.apply(.pause(reason))
            change.setCommand(nil)
            change.releaseOwner()
        }
    }

    /// Pauses the transfer until the server accepts a token, and releases its owner.
    package func pauseForSignIn(
        _ lease: Lease, message: String, answer: ServerAnswer?, attempt: FailedAttempt?
    ) async throws {
        try await update(lease, operation: "pause for sign-in") { change in
            try change.apply(.pause(.signInNeeded))
            change.setError(.unauthenticated, message, attempt: attempt)
            change.setAnswer(answer)
            change.setCommand(nil)
            change.releaseOwner()
        }
    }

    /// Cancels the transfer for the user; the record stays.
    package func cancel(_ lease: Lease) async throws {
        try await update(lease, operation: "cancel") { change in
            try change.apply(.cancel)
            change.forgetSecrets()
            change.setCommand(nil)
            change.releaseOwner()
        }
    }

    /// Acknowledges a command that the owner now carries out.
    package func acknowledgeCommand(_ lease: Lease) async throws {
        try await update(lease, operation: "acknowledge control") { change in
            change.setCommand(nil)
            if try change.row.state == change.row.direction.runningState {
                try change.apply(.wait)
            }
        }
    }

    /// Records that the whole file had another SHA-256 than expected; returns how often so far.
    package func recordIntegrityFailure(
        _ lease: Lease, message: String, answer: ServerAnswer?
    ) async throws -> Int {
        try await update(lease, operation: "record integrity failure") { change in
            let count = Int(change.row.integer(.integrityFailureCount) ?? 0) + 1
            change.set(.integrityFailureCount, count)
            change.setError(.integrityMismatch, message)
            change.setAnswer(answer)
            return count
        }
    }
}
