internal import Synchronization

/// Whether the server is stopping: not ready for new work from the first signal on.
final class DrainState: Sendable {
    private let state = Mutex(false)

    var isDraining: Bool { state.withLock { $0 } }
    func beginDraining() { state.withLock { $0 = true } }
}
