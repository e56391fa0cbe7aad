internal import KedgeLocks

/// The phase of a shutdown: serving, draining, or ending after the drain timeout.
package final class DrainState: Sendable {
    private enum Phase {
        case serving
        case draining
        case ending
    }
    private let phase = Mutex(Phase.serving)

    package init() {}

    /// Whether shutdown has begun. The server is then not ready for new work.
    var isDraining: Bool { phase.withLock { $0 != .serving } }
    /// Whether the drain timeout has passed. Responses that clients do not read are then aborted.
    var isEnding: Bool { phase.withLock { $0 == .ending } }

    func beginDraining() { phase.withLock { $0 = .draining } }
    func beginEnding() { phase.withLock { $0 = .ending } }
}
