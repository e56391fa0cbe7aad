internal import KedgeModel

/// Repeats the requests of a stream. A stream has no record: it ends with its process.
struct StreamRetry: Sendable {
    private let policy: RetryPolicy
    private let environment: ClientEnvironment
    /// Longest wait for an unavailable server; nil for ever.
    private let timeout: Duration?
    /// Called with the reason before each wait, from the third in a row on.
    private let onWait: @Sendable (String) -> Void
    private var failureCount = 0
    private var unavailableSince: Timestamp?

    init(
        _ configuration: ClientConfiguration, _ environment: ClientEnvironment, isKnown: Bool,
        onWait: @escaping @Sendable (String) -> Void
    ) {
        policy = configuration.retry
        self.environment = environment
        timeout =
            isKnown
            ? configuration.serverTimeout
            : configuration.firstAnswerTimeout ?? configuration.serverTimeout
        self.onWait = onWait
    }

    /// Notes that bytes have arrived.
    mutating func noteProgress() { (failureCount, unavailableSince) = (0, nil) }

    /// Waits before the next attempt.
    ///
    /// - Parameter isCurable: Whether another request can succeed, whatever the failure says.
    /// - Throws: The failure, if waiting cannot cure it or the limits are reached;
    ///   `CancellationError`.
    mutating func wait(after failure: RequestFailure, isCurable: Bool = false) async throws {
        if failure.isCanceled { throw CancellationError() }
        try Task.checkCancellation()
        guard failure.isRetryable || isCurable else { throw failure }
        failureCount += 1
        var failure = failure
        failure.attempt = failureCount
        var generator = environment.makeGenerator()
        var delay = policy.delay(
            afterFailures: failureCount, retryAfter: failure.retryAfter, using: &generator)
        if let most = policy.maxRetries, failureCount > most { throw failure }
        if failure.isOutage {
            let now = environment.now()
            let since = unavailableSince ?? now
            unavailableSince = since
            if let timeout {
                let left = timeout - now.duration(since: since)
                guard left > .zero else { throw failure }
                delay = min(delay, left)
            }
        } else if policy.maxRetries == nil, failureCount >= policy.transferBudget {
            throw failure
        }
        // A single break is normal, and other connections may go on.
        if failureCount > 2 { onWait(failure.message(delay: delay)) }
        try await environment.sleep(delay)
    }

    /// Repeats a request without bytes until it is answered.
    mutating func callAsFunction<Result: Sendable>(
        _ request: () async throws -> Result
    ) async throws -> Result {
        while true {
            do {
                return try await request()
            } catch let failure as RequestFailure {
                try await wait(after: failure)
            }
        }
    }
}

extension RequestFailure {
    /// The failure as an error for callers.
    var asTransferError: any Error {
        isCanceled
            ? CancellationError()
            : TransferError(code, operation: operation, explanation: message, cause: self)
    }
}
