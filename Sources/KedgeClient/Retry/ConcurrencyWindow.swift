/// How many chunks are in flight: one more after a round of successes, half after congestion (R126).
struct ConcurrencyWindow: Sendable, Equatable {
    /// Never fewer than this.
    static let minimum = 1
    /// In flight at first, and at most where no number was set.
    static let standard = 4

    private let cap: Int
    private(set) var limit: Int
    private var successCount = 0

    /// - Parameters:
    ///   - wish: As many as the host application set; nil for ``standard``, or fewer where memory is short.
    ///   - serverLimit: What the server takes in parallel, when it says.
    ///   - bufferByteCount: Memory that one chunk in flight holds.
    ///   - budgetByteCount: Memory that all of them may hold together, unless there is a wish.
    init(wish: Int?, serverLimit: Int?, bufferByteCount: Int64, budgetByteCount: Int64) {
        let byMemory = Int(clamping: budgetByteCount / max(1, bufferByteCount))
        let most = wish ?? min(Self.standard, byMemory)
        cap = max(Self.minimum, min(most, serverLimit ?? most))
        limit = cap
    }

    /// A chunk went through. The window grows after as many as it is wide.
    mutating func recordSuccess() {
        successCount += 1
        guard successCount >= limit else { return }
        successCount = 0
        limit = min(cap, limit + 1)
    }

    /// A time-out, a stall, or a server that asks for less.
    mutating func recordCongestion() {
        successCount = 0
        limit = max(Self.minimum, limit / 2)
    }
}
