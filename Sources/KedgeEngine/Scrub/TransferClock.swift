internal import KedgeLocks

/// Records when bytes of clients last moved, so that the scrub yields to them.
final class TransferClock: Sendable {
    /// Time after its last activity for which a transfer counts as in progress.
    private static let timeout = Duration.seconds(2)

    private let last = Mutex<ContinuousClock.Instant?>(nil)

    func tick() { last.withLock { $0 = .now } }

    /// True when a transfer moved bytes within that time.
    var isRecent: Bool { last.withLock { $0.map { .now - $0 < Self.timeout } ?? false } }
}
