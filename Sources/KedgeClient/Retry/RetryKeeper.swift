internal import KedgeModel
internal import Logging

/// The one place where a worker's retry decisions are made.
///
/// It asks the failure whether trying again can help, counts tries without progress, waits, and keeps
/// the record honest about waiting: while the server cannot be reached the transfer is `queued`, and
/// such waiting uses up no budget (R104).
actor RetryKeeper {
    private let lease: Lease
    private let store: TransferStore
    private let environment: ClientEnvironment
    private let configuration: ClientConfiguration
    private var acquaintance: Acquaintance
    private var budget: RetryBudget
    /// Of this run alone, so that runs which lose the server together do not come back together.
    private let phase: Double
    /// What is waited for; nil while the server answers.
    private var waiting: Waiting?
    /// Number of the attempt after which the record says that the transfer waits, nil when it does not;
    /// it follows ``waiting``, in order.
    private var recordedAttempt: Int?
    private var isRecording = false
    /// Requests in a row that found no server, for each chunk: chunks in flight fail together, and
    /// together they would drive one count up too fast.
    private var offlineFailureCounts: [Int: Int] = [:]

    /// A server that cannot be reached.
    private struct Waiting {
        let since: Timestamp
        /// The failure that was repeated most often.
        var failure: RequestFailure
        /// How long until the next try after it.
        var delay: Duration
    }

    init(
        lease: Lease, store: TransferStore, environment: ClientEnvironment,
        configuration: ClientConfiguration, acquaintance: Acquaintance
    ) {
        self.lease = lease
        self.store = store
        self.environment = environment
        self.configuration = configuration
        self.acquaintance = acquaintance
        self.budget = RetryBudget(policy: configuration.retry)
        var generator = environment.makeGenerator()
        self.phase = Double.random(in: 0..<1, using: &generator)
    }

    private var logger: Logger { configuration.logger }

    /// How long the server is waited for.
    private var patience: Duration? {
        guard acquaintance != .known else { return configuration.patience }
        return configuration.firstAnswerPatience ?? configuration.patience
    }

    /// Calls until it succeeds, for requests that move no bytes of a chunk.
    ///
    /// - Parameter surfacing: Codes that the caller handles itself; they are thrown at once.
    /// - Parameter chunk: What the request was made for, when that is a chunk: failures are charged to
    ///   it, so that chunks which ask at the same time do not use up one budget together.
    /// - Throws: the failure when it is permanent or the budget is used up; ``OutOfPatience``;
    ///   `CancellationError`.
    func retrying<Result: Sendable>(
        surfacing: Set<ErrorCode> = [], chunk: Int? = nil,
        _ call: @Sendable () async throws -> Result
    ) async throws -> Result {
        while true {
            try Task.checkCancellation()
            do {
                let result = try await call()
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
                try await backOff(after: failure, chunk: chunk)
            }
        }
    }

    /// Waits as the policy says, or rethrows a failure that waiting does not cure.
    ///
    /// - Parameter isReachable: True when the server answered another request since: then there is no
    ///   outage to wait for, whatever the failure looks like.
    func backOff(
        after failure: RequestFailure, chunk: Int?, isReachable: Bool = false
    ) async throws {
        if failure.isCanceled { throw CancellationError() }
        guard failure.isRetryable else { throw failure }
        // How long a server that has never answered is tried is the host's to say.
        let isLimited = acquaintance != .known && patience != nil && failure.isServerTrouble
        if failure.isOutage || isLimited, !isReachable {
            try await waitForServer(failure, chunk: chunk)
            return
        }
        try await noteAnswer()
        let count = budget.recordFailure(chunk: chunk)
        var failure = failure
        failure.attempt = count
        let delay = delay(failureCount: count, retryAfter: failure.retryAfter)
        logger.info(
            "try failed",
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

    /// Bytes of the chunk are on the other side for good, or on this one.
    func noteProgress(chunk: Int) async throws {
        try await noteAnswer()
        budget.recordProgress(chunk: chunk)
    }

    /// The server answered: if the record says that the transfer waits for it, that is over.
    func noteAnswer() async throws {
        guard waiting != nil else { return }
        waiting = nil
        offlineFailureCounts = [:]
        try await recordWaiting()
    }

    /// The server answered as it should: from now on it is known, for every transfer.
    private func noteServer() async throws {
        guard acquaintance != .known else { return }
        if case .newKedge(let url) = acquaintance { try await store.recordKnownServer(url) }
        acquaintance = .known
    }

    /// Ends the run where waiting cannot help, before the server has answered for the first time ever.
    private func judge(_ failure: RequestFailure) async throws {
        guard acquaintance != .known else { return }
        if failure.isFromKedge { return try await noteServer() }
        if let end = failure.atFirstContact(with: acquaintance) { throw end }
    }

    /// Makes the record say whether the transfer waits. One at a time: chunks in flight lose and find
    /// the server at the same moment, and the record must end up as the last of them saw it.
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

    private func waitForServer(_ failure: RequestFailure, chunk: Int?) async throws {
        let now = environment.now()
        var failure = failure
        failure.attempt = offlineFailureCounts[chunk ?? -1, default: 0] + 1
        offlineFailureCounts[chunk ?? -1] = failure.attempt
        if let most = budget.policy.maxRetries, failure.attempt > most { throw failure }
        var delay = delay(failureCount: failure.attempt, retryAfter: nil)
        // What the server asked for holds, whoever else gets through.
        var floor = min(failure.retryAfter ?? .zero, budget.policy.maxRetryAfter)
        if let patience {
            let left = patience - (waiting.map { now.duration(since: $0.since) } ?? .zero)
            guard left > .zero else { throw OutOfPatience(failure: failure, wait: patience) }
            floor = min(floor, left)
            delay = min(delay, left - floor)
        }
        try await note(failure, delay: floor + delay, at: now)
        if let chunk, !failure.isOffline {
            // Something was sent, so it was a try.
            try await store.recordAttempt(
                lease, chunk: chunk, code: failure.code,
                message: failure.message(delay: floor + delay), answer: failure.answer,
                attempt: failure.failedAttempt(next: now.advanced(by: floor + delay)))
        }
        if floor > .zero { try await environment.sleep(floor) }
        // The first request that is answered ends the wait of all: looked at in slices of it.
        while delay > .zero, waiting != nil {
            let slice = min(delay, .milliseconds(250))
            try await environment.sleep(slice)
            delay -= slice
        }
    }

    /// Remembers a failure, and writes down one that was repeated more often than those before.
    private func note(_ failure: RequestFailure, delay: Duration, at now: Timestamp) async throws {
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
        waiting = Waiting(since: waiting?.since ?? now, failure: failure, delay: delay)
        try await recordWaiting()
    }

    private func delay(failureCount: Int, retryAfter: Duration?) -> Duration {
        var generator = environment.makeGenerator()
        return budget.policy.delay(
            afterFailures: failureCount, retryAfter: retryAfter, phase: phase, using: &generator)
    }
}

/// The server could not be reached for longer than the host wants to wait. The transfer stays
/// `queued`; it has not failed.
struct OutOfPatience: Error {
    /// The last try.
    let failure: RequestFailure
    /// How long the server was waited for.
    let wait: Duration
}
