internal import KedgeModel

/// Repeats the requests of a stream. A stream has no record: it ends with its process.
struct StreamRetry: Sendable {
    private let policy: RetryPolicy
    private let environment: ClientEnvironment
    /// Longest wait for an unavailable server; nil for ever.
    private let timeout: Duration?
    /// Called with the reason before each wait, from the third in a row on, and while the first
    /// answer takes long.
    private let onWait: @Sendable (String) -> Void
    private var failureCount = 0
    private var unavailableSince: Timestamp?
    private var hasAnswered = false

    /// Time without a first answer after which the wait is reported.
    private static let silence = Duration.seconds(2)

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
    mutating func noteProgress() {
        (failureCount, unavailableSince) = (0, nil)
        hasAnswered = true
    }

    /// Waits before the next attempt.
    ///
    /// - Parameters:
    ///   - isCurable: Whether another request can succeed, whatever the failure says.
    ///   - began: Time of the failed request, from which the wait for the first answer counts.
    /// - Throws: The failure, if waiting cannot cure it or the limits are reached;
    ///   `CancellationError`.
    mutating func wait(
        after failure: RequestFailure, isCurable: Bool = false, began: Timestamp? = nil
    ) async throws {
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
            let since = unavailableSince ?? began ?? now
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
        if failureCount > 2 || failure.isOffline && !hasAnswered {
            onWait(failure.message(delay: delay))
        }
        try await environment.sleep(delay)
    }

    /// Repeats a request without bytes until it is answered.
    mutating func callAsFunction<Result: Sendable>(
        _ request: () async throws -> Result
    ) async throws -> Result {
        while true {
            let began = environment.now()
            let notice = hasAnswered ? nil : silenceNotice()
            defer { notice?.cancel() }
            do {
                let result = try await AnswerTimeout.$current.withValue(answerTimeout) {
                    try await request()
                }
                hasAnswered = true
                return result
            } catch let failure as RequestFailure {
                notice?.cancel()
                try await wait(after: failure, began: hasAnswered ? nil : began)
            }
        }
    }

    /// Time without a byte after which the next request fails; nil for the transport's own.
    private var answerTimeout: Duration? {
        guard let timeout, !hasAnswered || unavailableSince != nil else { return nil }
        let waited = unavailableSince.map { environment.now().duration(since: $0) } ?? .zero
        return AnswerTimeout.duration(timeout: timeout, waited: waited)
    }

    /// Reports the wait for an answer that takes long, until it is canceled.
    private func silenceNotice() -> Task<Void, any Error> {
        let (pause, onWait) = (environment.pause, onWait)
        return Task {
            try await pause(Self.silence)
            onWait("The server has not answered yet; waiting for it.")
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
