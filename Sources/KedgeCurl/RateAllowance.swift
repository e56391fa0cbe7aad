/// Bytes that one direction of a transfer may move now, so that it keeps to its rate.
///
/// libcurl's own limits are unusable here. It asks for up to 512 KiB of a body at once, and takes
/// whatever has arrived, before it compares them with the limit. At a low rate it then moves
/// nothing for minutes, which looks like a stalled peer.
package struct RateAllowance {
    /// Fewer bytes than these are handed over only at the end of a body.
    private static let leastByteCount = 1024.0

    /// Bytes a second; nil for no limit.
    private var rate: Int64?
    /// Bytes that may move. Below zero after a piece that could not be divided.
    private var balance = 0.0
    private var updatedAt: ContinuousClock.Instant
    /// Balance at which the direction continues; nil unless it is held.
    private var wantedBalance: Double?

    /// Begins without a byte. Otherwise many short transfers would move at any rate.
    package init(at now: ContinuousClock.Instant) {
        updatedAt = now
    }

    /// Whether the direction waits for its rate.
    package var isHeld: Bool { wantedBalance != nil }

    /// Time at which a held direction can continue; nil unless it is held.
    package var releaseTime: ContinuousClock.Instant? {
        guard let wantedBalance else { return nil }
        guard let rate, balance < wantedBalance else { return updatedAt }
        return updatedAt + .seconds((wantedBalance - balance) / Double(rate))
    }

    /// Sets the rate; it takes effect at once.
    package mutating func setRate(_ rate: Int64?, at now: ContinuousClock.Instant) {
        accrue(now)
        self.rate = rate
        balance = min(balance, capacity)
        wantedBalance = wantedBalance.map { min($0, capacity / 2) }
    }

    /// Takes bytes that are about to be sent.
    ///
    /// - Returns: The number to send, at most `most`; 0 to hold the direction.
    package mutating func take(upTo most: Int, at now: ContinuousClock.Instant) -> Int {
        guard rate != nil else { return most }
        accrue(now)
        guard balance >= min(Double(most), Self.leastByteCount) else {
            hold(for: most)
            return 0
        }
        let count = Int(min(Double(most), balance))
        balance -= Double(count)
        return count
    }

    /// Takes bytes that have arrived and cannot be divided.
    ///
    /// - Returns: False to leave them and hold the direction.
    package mutating func takeAll(_ byteCount: Int, at now: ContinuousClock.Instant) -> Bool {
        guard rate != nil, byteCount > 0 else { return true }
        accrue(now)
        guard balance > 0 else {
            hold(for: byteCount)
            return false
        }
        balance -= Double(byteCount)
        return true
    }

    /// Ends a hold whose time has come. Returns whether it did.
    package mutating func release(at now: ContinuousClock.Instant) -> Bool {
        guard let releaseTime, now >= releaseTime else { return false }
        wantedBalance = nil
        return true
    }

    /// The balance that time alone can reach: bytes of a quarter of a second. A round of the curl
    /// thread that is late by less loses nothing.
    private var capacity: Double {
        max(2 * Self.leastByteCount, Double(rate ?? 0) / 4)
    }

    /// Holds the direction until all these bytes may move, or so many that few rounds are needed.
    private mutating func hold(for byteCount: Int) {
        wantedBalance = min(Double(byteCount), capacity / 2)
    }

    private mutating func accrue(_ now: ContinuousClock.Instant) {
        let elapsed = max(now - updatedAt, .zero) / .seconds(1)
        updatedAt = max(now, updatedAt)
        balance = min(balance + elapsed * Double(rate ?? 0), capacity)
    }
}
