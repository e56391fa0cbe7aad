internal import KedgeLocks

/// A task that one place starts and another cancels.
final class CancellableTask: Sendable {
    private let task = Mutex<Task<Void, any Error>?>(nil)

    func set(_ new: Task<Void, any Error>) { task.withLock { $0 = new } }
    func cancel() { task.withLock { $0?.cancel() } }
}
