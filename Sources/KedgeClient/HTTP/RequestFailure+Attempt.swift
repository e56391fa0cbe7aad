package import KedgeModel
internal import KedgeTransport

extension RequestFailure {
    /// Returns the facts that the record keeps of the failure.
    ///
    /// - Parameter next: Time of the next try; nil for none.
    package func failedAttempt(next: Timestamp? = nil) -> FailedAttempt {
        let connection = transport?.connection
        return FailedAttempt(
            cause: connection?.cause, host: connection?.host ?? answer?.host,
            port: connection?.port ?? answer?.port,
            attempt: attempt, nextAttemptAt: next)
    }

    /// Returns the message of a failure that will be retried.
    func message(delay: Duration) -> String {
        let seconds = max(1, Int((delay / .seconds(1)).rounded(.up)))
        return "\(openMessage); attempt \(attempt), next try in \(seconds) s"
    }

    /// Returns the message of a failure after which the run stops waiting.
    func message(gaveUpAfter wait: Duration) -> String {
        let tries = attempt == 1 ? "1 attempt" : "\(attempt) attempts"
        return "\(openMessage); gave up after \(tries) in \(Int(wait / .seconds(1))) s;"
            + " run it again to resume"
    }

    private var openMessage: String {
        message.hasSuffix(".") ? String(message.dropLast()) : message
    }
}
