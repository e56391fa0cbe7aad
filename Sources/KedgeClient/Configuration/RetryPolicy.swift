internal import Foundation

/// Exponential back-off with a random phase for each run, and limits of tries without progress.
///
/// Has no clock or randomness of its own, so that tests can check its properties.
public struct RetryPolicy: Sendable, Hashable {
    /// Upper bound of the first wait; it doubles with each further try. 0.2 seconds.
    public var baseDelay: Duration = .milliseconds(200)
    /// Largest bound of a wait; 30 seconds. A lower bound finds a recovered server sooner, and
    /// sends more traffic to one that is down.
    public var maxDelay: Duration = .seconds(30)
    /// Longest `Retry-After` that is honored; 5 minutes. A longer one is cut to this.
    public var maxRetryAfter: Duration = .seconds(300)
    /// Limit of tries of one chunk in a row without progress; 12, about two minutes.
    public var chunkBudget = 12
    /// Limit of tries of the whole transfer in a row without progress; 40.
    public var transferBudget = 40
    /// Limit of retries in a row without progress, whatever the reason; 0 tries once. Nil applies
    /// the budgets, and waits for an unreachable server.
    public var maxRetries: Int?

    /// Creates the default policy.
    public init() {}

    /// Smallest share of the bound that a wait takes.
    static let leastShare = 0.9

    /// Returns the wait after `failureCount` failures in a row, at least 1.
    ///
    /// The wait is just below the bound, which the phase shifts. The phase lies between 0 and 1 and
    /// is drawn once for each run. Clients that lost a server together thus return evenly spread.
    /// With full jitter, a wait from the whole interval below a common bound, two to nine times the
    /// mean number of clients would return in the first moments, mostly after a short outage.
    /// `Retry-After` is a floor; up to a quarter of it, or one second, is added to spread the
    /// clients.
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

    /// Returns the upper bound of the wait, which doubles with each failure up to the maximum. A
    /// phase of 1 is one doubling behind a phase of 0.
    public func bound(afterFailures failureCount: Int, phase: Double = 0) -> Duration {
        // Thirty doublings exceed any sensible maximum; more would overflow.
        let doublings = min(max(failureCount, 1) - 1, 30)
        return min(maxDelay, baseDelay * (1 << doublings) * exp2(-min(max(phase, 0), 1)))
    }
}

/// Counts tries without progress, for each chunk and for the whole transfer.
package struct RetryBudget: Sendable, Equatable {
    let policy: RetryPolicy
    private(set) var transferFailureCount = 0
    /// By chunk; nil for requests without a chunk.
    private var chunkFailureCounts: [Int?: Int] = [:]

    package init(policy: RetryPolicy) { self.policy = policy }

    /// Counts a try without progress.
    ///
    /// - Returns: The number in a row for this chunk, or for requests without a chunk.
    package mutating func recordFailure(chunk: Int?) -> Int {
        transferFailureCount += 1
        chunkFailureCounts[chunk, default: 0] += 1
        return chunkFailureCounts[chunk, default: 0]
    }

    /// Whether the policy allows no further try.
    package func isExhausted(chunk: Int?) -> Bool {
        let count = chunkFailureCounts[chunk, default: 0]
        if let most = policy.maxRetries { return count > most }
        return transferFailureCount >= policy.transferBudget || count >= policy.chunkBudget
    }

    /// Resets the counts: bytes of the chunk are durable, or a request without a chunk succeeded.
    package mutating func recordProgress(chunk: Int?) {
        chunkFailureCounts.removeValue(forKey: chunk)
        // Only bytes are progress of the transfer, not an answered status request.
        if chunk != nil { transferFailureCount = 0 }
    }
}
