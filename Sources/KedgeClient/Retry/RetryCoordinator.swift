package import KedgeModel
internal import Logging

/// Makes all retry decisions of a worker.
///
/// Asks the failure whether a retry can help, counts tries without progress, and waits. While the
/// server cannot be reached, the record says `queued`, and waiting uses no budget.
package actor RetryCoordinator {
    private let lease: Lease
    private let store: TransferStore
    private let environment: ClientEnvironment
    private let configuration: ClientConfiguration
    private var serverHistory: ServerHistory
    private var budget: RetryBudget
    /// Drawn once per run, so that runs that lose the server together do not retry together.
    private let phase: Double
    /// The outage that the run waits out; nil while the server answers.
    private var waiting: Waiting?
    /// Number of the attempt that the record shows as waiting; nil when it shows none. Follows
    /// ``waiting`` in order.
    private var recordedAttempt: Int?
    private var isRecording = false
    /// Whether the server has answered in this run.
    private var hasAnswered = false
    /// Number of requests in a row that found no server, by chunk; nil for requests without a
    /// chunk. Chunks in flight fail together and would raise a common count too fast.
    private var offlineFailureCounts: [Int?: Int] = [:]

    /// A server that cannot be reached.
    private struct Waiting {
        let since: Timestamp
        /// The failure with the highest attempt number.
        var failure: RequestFailure
        /// Delay between that failure and the next try.
        var delay: Duration
    }

    package init(
        lease: Lease, store: TransferStore, environment: ClientEnvironment,
        configuration: ClientConfiguration, serverHistory: ServerHistory
    ) {
        self.lease = lease
        self.store = store
        self.environment = environment
        self.configuration = configuration
        self.serverHistory = serverHistory
        self.budget = RetryBudget(policy: configuration.retry)
        var generator = environment.makeGenerator()
        self.phase = Double.random(in: 0..<1, using: &generator)
    }

    private var logger: Logger { configuration.logger }

    /// Timeout for the wait; nil for none.
    private var timeout: Duration? {
        guard serverHistory != .known else { return configuration.serverTimeout }
        return configuration.firstAnswerTimeout ?? configuration.serverTimeout
    }

    /// Repeats a call until it succeeds, for requests that move no bytes of a chunk.
    ///
    /// - Parameter surfacing: Codes that the caller handles itself; they are thrown at once.
    /// - Parameter chunk: The chunk that the request is for. Its failures count against that chunk,
    ///   so that concurrent chunks do not exhaust one budget together.
    /// - Throws: The failure if it is permanent or the budget is exhausted; ``RunInterruption``;
    ///   `CancellationError`.
    package func retrying<Result: Sendable>(
        surfacing: Set<ErrorCode> = [], chunk: Int? = nil,
        _ call: @Sendable () async throws -> Result
    ) async throws -> Result {
        while true {
            try Task.checkCancellation()
            let began = environment.now()
            do {
                let result = try await AnswerTimeout.$current.withValue(answerTimeout) {
                    try await call()
                }
                try await noteServer()
                try await noteAnswer()
                if chunk == nil { budget.recordProgress(chunk: nil) }
                return result
            } catch let failure as RequestFailure {
                try await judge(failure)
                if surfacing.contains(failure.code), failure.answer != nil {
                    try await noteAnswer()
                    throw failure
                }
                try await backOff(after: failure, chunk: chunk, began: began)
            }
        }
    }

    /// Time without a byte after which the next request fails; nil for the transport's own.
    ///
    /// Until the server answers, a request that it never answers must not outlast the wait for it.
    /// Later, a request may take long because the server works on it.
    private var answerTimeout: Duration? {
        guard let timeout, !hasAnswered || waiting != nil else { return nil }
        let waited = waiting.map { environment.now().duration(since: $0.since) } ?? .zero
        return AnswerTimeout.duration(timeout: timeout, waited: waited)
    }

    /// Waits as the policy requires, or rethrows a failure that waiting cannot cure.
    ///
    /// - Parameters:
    ///   - isReachable: Whether the server has answered another request since. Then there is no
    ///     outage to wait for, whatever the failure looks like.
    ///   - began: Time of the failed request, from which the wait for the first answer counts.
    func backOff(
        after failure: RequestFailure, chunk: Int?, isReachable: Bool = false,
        began: Timestamp? = nil
    ) async throws {
        if failure.isCanceled { throw CancellationError() }
        guard failure.isRetryable else { throw failure }
        // The host application limits the tries of a server that has never answered.
        let isLimited = serverHistory != .known && timeout != nil && failure.isServerTrouble
        if failure.isOutage || isLimited, !isReachable {
            try await waitForServer(failure, chunk: chunk, began: hasAnswered ? nil : began)
            return
        }
        try await noteAnswer()
        let count = budget.recordFailure(chunk: chunk)
        var failure = failure
        failure.attempt = count
        let delay = delay(failureCount: count, retryAfter: failure.retryAfter)
        logger.info(
            "attempt failed",
            metadata: [
                "transfer": "\(lease.id)", "chunk": "\(chunk.map(String.init) ?? "-")",
                "code": "\(failure.code.rawValue)", "count": "\(count)",
                "error": "\(String(reflecting: failure))",
            ])
        try await store.recordAttempt(
            lease, chunk: chunk, code: failure.code, message: failure.message(delay: delay),
            answer: failure.answer,
            attempt: failure.failedAttempt(next: environment.now().advanced(by: delay)))
        guard !budget.isExhausted(chunk: chunk) else { throw failure }
        try await environment.sleep(delay)
    }

    /// Records that bytes of the chunk are durable on the receiving side.
    func noteProgress(chunk: Int) async throws {
        try await noteAnswer()
        budget.recordProgress(chunk: chunk)
    }

    /// Ends the wait for the server, because it answered.
    func noteAnswer() async throws {
        hasAnswered = true
        guard waiting != nil else { return }
        waiting = nil
        offlineFailureCounts = [:]
        try await recordWaiting()
    }

    /// Records for all transfers that the server is known, because it answered correctly.
    private func noteServer() async throws {
        guard serverHistory != .known else { return }
        if case .newKedge(let url) = serverHistory { try await store.recordKnownServer(url) }
        serverHistory = .known
    }

    /// Ends the run if waiting cannot help, as long as the server has never answered.
    private func judge(_ failure: RequestFailure) async throws {
        guard serverHistory != .known else { return }
        if failure.isFromKedge { return try await noteServer() }
        if let end = failure.atFirstContact(with: serverHistory) { throw end }
    }

    /// Makes the record show whether the transfer waits. Runs once at a time: chunks in flight lose
    /// and find the server together, and the record must end in the latest state.
    private func recordWaiting() async throws {
        guard !isRecording else { return }
        isRecording = true
        defer { isRecording = false }
        while recordedAttempt != waiting?.failure.attempt {
            guard let now = waiting else {
                try await store.start(lease)
                recordedAttempt = nil
                continue
            }
            let failure = now.failure
            try await store.wait(
                lease, code: failure.code, message: failure.message(delay: now.delay),
                answer: failure.answer,
                attempt: failure.failedAttempt(next: environment.now().advanced(by: now.delay)))
            recordedAttempt = failure.attempt
        }
    }

    private func waitForServer(
        _ failure: RequestFailure, chunk: Int?, began: Timestamp?
    ) async throws {
        let now = environment.now()
        let since = waiting?.since ?? began ?? now
        var failure = failure
        failure.attempt = offlineFailureCounts[chunk, default: 0] + 1
        offlineFailureCounts[chunk] = failure.attempt
        if let most = budget.policy.maxRetries, failure.attempt > most { throw failure }
        var delay = delay(failureCount: failure.attempt, retryAfter: nil)
        // The server's `Retry-After` holds even if another request gets through.
        var floor = min(failure.retryAfter ?? .zero, budget.policy.maxRetryAfter)
        if let timeout {
            let waited = now.duration(since: since)
            let left = timeout - waited
            guard left > .zero else {
                throw RunInterruption.serverTimeout(failure, timeout: max(timeout, waited))
            }
            floor = min(floor, left)
            delay = min(delay, left - floor)
        }
        try await note(failure, delay: floor + delay, since: since)
        if let chunk, !failure.isOffline {
            // Data was sent, so it counts as a try.
            try await store.recordAttempt(
                lease, chunk: chunk, code: failure.code,
                message: failure.message(delay: floor + delay), answer: failure.answer,
                attempt: failure.failedAttempt(next: now.advanced(by: floor + delay)))
        }
        if floor > .zero { try await environment.sleep(floor) }
        // The first answered request ends the wait for all; polled in slices.
        while delay > .zero, waiting != nil {
            let slice = min(delay, .milliseconds(250))
            try await environment.sleep(slice)
            delay -= slice
        }
    }

    /// Notes a failure, and records it if its attempt number is the highest so far.
    private func note(
        _ failure: RequestFailure, delay: Duration, since: Timestamp
    ) async throws {
        if waiting == nil {
            logger.notice(
                "waiting for the server",
                metadata: [
                    "transfer": "\(lease.id)", "code": "\(failure.code.rawValue)",
                    "error": "\(String(reflecting: failure))",
                ])
        } else if let waiting, waiting.failure.attempt >= failure.attempt {
            return
        }
        waiting = Waiting(since: waiting?.since ?? since, failure: failure, delay: delay)
        try await recordWaiting()
    }

    private func delay(failureCount: Int, retryAfter: Duration?) -> Duration {
        var generator = environment.makeGenerator()
        return budget.policy.delay(
            afterFailures: failureCount, retryAfter: retryAfter, phase: phase, using: &generator)
    }
}
