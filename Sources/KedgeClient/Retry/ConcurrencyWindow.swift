/// Limit of chunks in flight: grows by one after a round of successes, halves after congestion.
package struct ConcurrencyWindow: Sendable, Equatable {
    /// Smallest limit.
    static let minimum = 1
    /// Largest limit where the host application sets none.
    static let standard = 4

    private let cap: Int
    package private(set) var limit: Int
    private var successCount = 0

    /// - Parameters:
    ///   - wish: Limit set by the host application; nil for ``standard``, or fewer where memory is
    ///     short.
    ///   - serverLimit: Limit that the server states, if any.
    ///   - bufferByteCount: Memory per chunk in flight.
    ///   - budgetByteCount: Memory for all chunks in flight; ignored if `wish` is set.
    package init(wish: Int?, serverLimit: Int?, bufferByteCount: Int64, budgetByteCount: Int64) {
        let byMemory = Int(clamping: budgetByteCount / max(1, bufferByteCount))
        let most = wish ?? min(Self.standard, byMemory)
        cap = max(Self.minimum, min(most, serverLimit ?? most))
        limit = cap
    }

    /// Counts a completed chunk. The window grows after as many as its width.
    package mutating func recordSuccess() {
        successCount += 1
        guard successCount >= limit else { return }
        successCount = 0
        limit = min(cap, limit + 1)
    }

    /// Halves the window after a timeout, a stall, or a request of the server to slow down.
    package mutating func recordCongestion() {
        successCount = 0
        limit = max(Self.minimum, limit / 2)
    }
}
