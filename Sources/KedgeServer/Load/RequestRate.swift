/// A rate of requests with a burst: the values of the generic cell rate algorithm (ITU-T I.371).
///
/// It needs one point in time for each party, the end of what the party has used up, and neither a
/// queue nor a timer.
package struct RequestRate: Hashable, Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// Time in which one more request becomes possible.
    private let interval: Duration
    /// Number of requests that a party can make at once after a pause.
    private let burst: Int

    /// Returns nil for a count of zero, which is no limit.
    ///
    /// - Parameter count: Number of requests in each period.
    package init?(count: Int, per period: Duration, burst: Int) {
        guard count > 0 else { return nil }
        interval = period / count
        self.burst = max(1, burst)
    }

    /// Returns the time until the next request is possible; nil if it is possible now.
    ///
    /// - Parameter end: The end of what the party has used up; nil for a party without requests.
    package func wait(at now: Instant, usedUntil end: Instant?) -> Duration? {
        guard let end else { return nil }
        let earliest = end - interval * (burst - 1)
        return earliest > now ? now.duration(to: earliest) : nil
    }

    /// Returns the end of what the party has used up after one more request.
    package func end(at now: Instant, usedUntil end: Instant?) -> Instant {
        max(now, end ?? now) + interval
    }
}
