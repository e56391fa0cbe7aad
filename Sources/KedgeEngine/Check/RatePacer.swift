/// Decides how long a reader waits so that it reads no more than so many bytes a second.
///
/// A value without a clock: it is told the time. Time in which nothing was read is not made up for,
/// so that a slow disk is not followed by a burst.
package struct RatePacer: Hashable, Sendable {
    /// May change between two reads.
    package var bytesPerSecond: Int64 {
        didSet { precondition(bytesPerSecond > 0, "a rate lets something pass") }
    }
    /// When the bytes that passed so far are paid for.
    private var paidAt = Duration.zero

    /// - Precondition: `bytesPerSecond > 0`.
    package init(bytesPerSecond: Int64) {
        precondition(bytesPerSecond > 0, "a rate lets something pass")
        self.bytesPerSecond = bytesPerSecond
    }

    /// Most bytes to read at once: a quarter of a second's worth, so that a low rate is a steady one.
    package var stepByteCount: Int64 { max(4096, bytesPerSecond / 4) }

    /// How long to wait after reading so many bytes.
    ///
    /// - Parameter now: Time since any fixed moment.
    package mutating func pause(after byteCount: Int64, at now: Duration) -> Duration {
        let cost = Duration.seconds(Double(byteCount) / Double(bytesPerSecond))
        paidAt = max(paidAt, now) + cost
        return paidAt - now
    }
}
