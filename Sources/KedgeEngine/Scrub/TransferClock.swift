internal import KedgeLocks

/// Remembers when bytes of clients last moved, so that the scrub stays behind them.
final class TransferClock: Sendable {
    /// How long after its last sign a transfer counts as under way.
    private static let patience = Duration.seconds(2)

    private let last = Mutex<ContinuousClock.Instant?>(nil)

    func tick() { last.withLock { $0 = .now } }

    /// True while a transfer was seen a moment ago.
    var isRecent: Bool { last.withLock { $0.map { .now - $0 < Self.patience } ?? false } }
}
