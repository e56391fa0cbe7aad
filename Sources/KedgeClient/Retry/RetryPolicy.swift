/// When to try again: exponential back-off with full jitter, and how often without progress.
///
/// A value without clock or randomness of its own, so that its properties can be tested.
public struct RetryPolicy: Sendable, Hashable {
    /// Upper bound of the first wait; the bound doubles with each further try. 0.2 seconds.
    public var baseDelay: Duration = .milliseconds(200)
    /// Largest bound of a wait; 30 seconds. Lower finds a recovered server sooner, at the price of
    /// more traffic to one that is down.
    public var maxDelay: Duration = .seconds(30)
    /// Longest `Retry-After` that is honoured; 5 minutes. A longer one is cut to this.
    public var maxRetryAfter: Duration = .seconds(300)
    /// Tries of one chunk in a row that brought no byte further; 12, about two minutes.
    public var chunkBudget = 12
    /// Tries of the whole transfer in a row that brought no byte further; 40.
    public var transferBudget = 40

    /// The defaults.
    public init() {}

    /// How long to wait after `failureCount` failures in a row, at least 1.
    ///
    /// Uniform between zero and the bound: clients that lost the same server at the same moment come
    /// back spread out. What the server asked for with `Retry-After` is a floor under that.
    public func delay(
        afterFailures failureCount: Int, retryAfter: Duration?,
        using generator: inout some RandomNumberGenerator
    ) -> Duration {
        let bound = bound(afterFailures: failureCount)
        let jitter = bound * Double.random(in: 0...1, using: &generator)
        guard let retryAfter, retryAfter > .zero else { return jitter }
        return min(retryAfter, maxRetryAfter) + min(jitter, .seconds(1))
    }

    /// The upper bound of the jittered wait.
    public func bound(afterFailures failureCount: Int) -> Duration {
        // Thirty doublings of any sensible base are beyond any sensible cap; more would overflow.
        let doublings = min(max(failureCount, 1) - 1, 30)
        return min(maxDelay, baseDelay * (1 << doublings))
    }
}

/// Counts tries without progress, for each chunk and for the whole transfer.
struct RetryBudget: Sendable, Equatable {
    let policy: RetryPolicy
    private(set) var transferFailureCount = 0
    private var chunkFailureCounts: [Int: Int] = [:]

    init(policy: RetryPolicy) { self.policy = policy }

    /// A try brought nothing; returns how many in a row of this chunk, or of the requests that belong
    /// to no chunk.
    mutating func recordFailure(chunk: Int?) -> Int {
        transferFailureCount += 1
        let key = chunk ?? -1
        chunkFailureCounts[key, default: 0] += 1
        return chunkFailureCounts[key, default: 0]
    }

    /// True when there were as many tries in a row without progress as the policy allows.
    func isExhausted(chunk: Int?) -> Bool {
        transferFailureCount >= policy.transferBudget
            || chunkFailureCounts[chunk ?? -1, default: 0] >= policy.chunkBudget
    }

    /// Bytes of the chunk arrived for good, or a request that belongs to no chunk succeeded.
    mutating func recordProgress(chunk: Int?) {
        chunkFailureCounts[chunk ?? -1] = nil
        // A status that can be read is no progress of the transfer; bytes are.
        if chunk != nil { transferFailureCount = 0 }
    }
}
