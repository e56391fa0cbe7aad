internal import Foundation

/// When to try again: exponential back-off with a phase of each client's own, and how often without
/// progress.
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
    /// Tries in a row that bring nothing, after the first, before the transfer fails, whatever the
    /// reason; nil lets the budgets count, and waits for a server that is away. 0 tries once.
    public var maxRetries: Int?

    /// The defaults.
    public init() {}

    /// The part of the bound that every wait has at least.
    static let leastShare = 0.9

    /// How long to wait after `failureCount` failures in a row, at least 1.
    ///
    /// Close below the bound, which each client's phase shifts: clients that lost the same server at the
    /// same moment come back spread evenly, whenever that is. Waits drawn from the whole interval below
    /// one bound for all would let two to nine times the mean come back in the first moments, most of
    /// them after a short outage. What the server asked for with `Retry-After` is a floor; a quarter of
    /// it more, or one second, spreads those who were asked at once.
    ///
    /// - Parameter phase: Between 0 and 1, drawn once for each transfer.
    public func delay(
        afterFailures failureCount: Int, retryAfter: Duration?, phase: Double = 0,
        using generator: inout some RandomNumberGenerator
    ) -> Duration {
        guard let retryAfter, retryAfter > .zero else {
            return bound(afterFailures: failureCount, phase: phase)
                * Double.random(in: Self.leastShare...1, using: &generator)
        }
        let floor = min(retryAfter, maxRetryAfter)
        return floor + max(.seconds(1), floor / 4) * Double.random(in: 0...1, using: &generator)
    }

    /// The upper bound of the wait: it doubles with each failure up to the cap. A phase of 1 is one
    /// doubling behind a phase of 0.
    public func bound(afterFailures failureCount: Int, phase: Double = 0) -> Duration {
        // Thirty doublings of any sensible base are beyond any sensible cap; more would overflow.
        let doublings = min(max(failureCount, 1) - 1, 30)
        return min(maxDelay, baseDelay * (1 << doublings) * exp2(-min(max(phase, 0), 1)))
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
        let count = chunkFailureCounts[chunk ?? -1, default: 0]
        if let most = policy.maxRetries { return count > most }
        return transferFailureCount >= policy.transferBudget || count >= policy.chunkBudget
    }

    /// Bytes of the chunk arrived for good, or a request that belongs to no chunk succeeded.
    mutating func recordProgress(chunk: Int?) {
        chunkFailureCounts[chunk ?? -1] = nil
        // A status that can be read is no progress of the transfer; bytes are.
        if chunk != nil { transferFailureCount = 0 }
    }
}
