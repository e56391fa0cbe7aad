internal import KedgeModel

extension RequestFailure {
    /// What the record keeps of the failure.
    ///
    /// - Parameter next: When it is tried again.
    func failedAttempt(next: Timestamp? = nil) -> FailedAttempt {
        let connection = transport?.connection
        return FailedAttempt(
            cause: connection?.cause, host: connection?.host ?? answer?.host,
            port: connection?.port ?? answer?.port,
            attempt: attempt, nextAttemptAt: next)
    }

    /// The message of a failure after which it is tried again (R104).
    func message(delay: Duration) -> String {
        let seconds = max(1, Int((delay / .seconds(1)).rounded(.up)))
        return "\(openMessage); attempt \(attempt), next try in \(seconds) s"
    }

    /// The message of a failure after which a run stops waiting.
    func message(gaveUpAfter wait: Duration) -> String {
        let tries = attempt == 1 ? "1 attempt" : "\(attempt) attempts"
        return "\(openMessage); gave up after \(tries) in \(Int(wait / .seconds(1))) s;"
            + " run it again to go on"
    }

    /// The message without its full stop.
    private var openMessage: String {
        message.hasSuffix(".") ? String(message.dropLast()) : message
    }
}
