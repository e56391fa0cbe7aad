internal import KedgeLocks

/// Whether the server is stopping, and whether its patience is over.
final class DrainState: Sendable {
    private enum Phase {
        case serving
        case draining
        case ending
    }
    private let phase = Mutex(Phase.serving)

    /// True from the first signal on: not ready for new work.
    var isDraining: Bool { phase.withLock { $0 != .serving } }
    /// True when answers that nobody reads are to be cut.
    var isEnding: Bool { phase.withLock { $0 == .ending } }

    func beginDraining() { phase.withLock { $0 = .draining } }
    func beginEnding() { phase.withLock { $0 = .ending } }
}
