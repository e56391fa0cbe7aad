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
    private let patience: Duration?
    private let logger: Logger
    private var budget: RetryBudget
    /// Of this run alone, so that runs which lose the server together do not come back together.
    private let phase: Double
    /// Since when the server cannot be reached.
    private var offlineSince: Timestamp?
    /// What the record says about waiting; it follows ``offlineSince``, in order.
    private var isRecordedWaiting = false
    private var isRecording = false
    /// Requests in a row that found no server, for each chunk: chunks in flight fail together, and
    /// together they would drive one count up too fast.
    private var offlineFailureCounts: [Int: Int] = [:]

    init(
        lease: Lease, store: TransferStore, environment: ClientEnvironment, policy: RetryPolicy,
        patience: Duration?, logger: Logger
    ) {
        self.lease = lease
        self.store = store
        self.environment = environment
        self.budget = RetryBudget(policy: policy)
        var generator = environment.makeGenerator()
        self.phase = Double.random(in: 0..<1, using: &generator)
        self.patience = patience
        self.logger = logger
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
                try await noteAnswer()
                if chunk == nil { budget.recordProgress(chunk: nil) }
                return result
            } catch let failure as RequestFailure {
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
        if failure.isOutage, !isReachable {
            try await waitForServer(failure, chunk: chunk)
            return
        }
        try await noteAnswer()
        let count = budget.recordFailure(chunk: chunk)
        logger.info(
            "try failed",
            metadata: [
                "transfer": "\(lease.id)", "chunk": "\(chunk.map(String.init) ?? "-")",
                "code": "\(failure.code.rawValue)", "count": "\(count)",
                "error": "\(String(reflecting: failure))",
            ])
        try await store.recordAttempt(
            lease, chunk: chunk, code: failure.code, message: failure.message,
            answer: failure.answer)
        guard !budget.isExhausted(chunk: chunk) else { throw failure }
        try await environment.sleep(
            delay(failureCount: count, retryAfter: failure.retryAfter))
    }

    /// Bytes of the chunk are on the other side for good, or on this one.
    func noteProgress(chunk: Int) async throws {
        try await noteAnswer()
        budget.recordProgress(chunk: chunk)
    }

    /// The server answered: if the record says that the transfer waits for it, that is over.
    func noteAnswer() async throws {
        guard offlineSince != nil else { return }
        offlineSince = nil
        offlineFailureCounts = [:]
        try await recordWaiting(nil)
    }

    /// Makes the record say whether the transfer waits. One at a time: chunks in flight lose and find
    /// the server at the same moment, and the record must end up as the last of them saw it.
    private func recordWaiting(_ failure: RequestFailure?) async throws {
        guard !isRecording else { return }
        isRecording = true
        defer { isRecording = false }
        while isRecordedWaiting != (offlineSince != nil) {
            let isWaiting = !isRecordedWaiting
            if isWaiting {
                try await store.wait(
                    lease, code: failure?.code ?? .offline,
                    message: failure?.message ?? ErrorCode.offline.facts.sentence,
                    answer: failure?.answer)
            } else {
                try await store.start(lease)
            }
            isRecordedWaiting = isWaiting
        }
    }

    private func waitForServer(_ failure: RequestFailure, chunk: Int?) async throws {
        let now = environment.now()
        let count = offlineFailureCounts[chunk ?? -1, default: 0] + 1
        offlineFailureCounts[chunk ?? -1] = count
        if let since = offlineSince {
            if let patience, now.duration(since: since) > patience { throw OutOfPatience() }
        } else {
            offlineSince = now
            logger.notice("waiting for the server", metadata: ["transfer": "\(lease.id)"])
            try await recordWaiting(failure)
        }
        if let chunk, !failure.isOffline {
            // Something was sent, so it was a try.
            try await store.recordAttempt(
                lease, chunk: chunk, code: failure.code, message: failure.message,
                answer: failure.answer)
        }
        if let retryAfter = failure.retryAfter, retryAfter > .zero {
            // What the server asked for holds, whoever else gets through.
            try await environment.sleep(min(retryAfter, budget.policy.maxRetryAfter))
        }
        // Whoever gets through first wakes the others: looked at in slices of the wait.
        var left = delay(failureCount: count, retryAfter: nil)
        while left > .zero, offlineSince != nil {
            let slice = min(left, .milliseconds(250))
            try await environment.sleep(slice)
            left -= slice
        }
    }

    private func delay(failureCount: Int, retryAfter: Duration?) -> Duration {
        var generator = environment.makeGenerator()
        return budget.policy.delay(
            afterFailures: failureCount, retryAfter: retryAfter, phase: phase, using: &generator)
    }
}

/// The server could not be reached for longer than the host wants to wait. The transfer stays
/// `queued`; it has not failed.
struct OutOfPatience: Error {}
