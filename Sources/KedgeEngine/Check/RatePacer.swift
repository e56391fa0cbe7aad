/// Computes how long a reader waits between reads to stay below a rate.
///
/// A value without a clock: the caller passes the time. Idle time earns no credit, so a burst never
/// follows a slow disk.
package struct RatePacer: Hashable, Sendable {
    /// Maximum rate; may change between two reads.
    package var bytesPerSecond: Int64 {
        didSet { precondition(bytesPerSecond > 0, "a rate is positive") }
    }
    /// The time at which the bytes read so far fit the rate.
    private var paidAt = Duration.zero

    /// - Precondition: `bytesPerSecond > 0`.
    package init(bytesPerSecond: Int64) {
        precondition(bytesPerSecond > 0, "a rate is positive")
        self.bytesPerSecond = bytesPerSecond
    }

    /// Maximum number of bytes to read at once: a quarter of a second's worth, so that a low rate
    /// is steady.
    package var stepByteCount: Int64 { max(4096, bytesPerSecond / 4) }

    /// Returns how long to wait after reading so many bytes.
    ///
    /// - Parameter now: Time since any fixed moment.
    package mutating func pause(after byteCount: Int64, at now: Duration) -> Duration {
        let cost = Duration.seconds(Double(byteCount) / Double(bytesPerSecond))
        paidAt = max(paidAt, now) + cost
        return paidAt - now
    }
}
