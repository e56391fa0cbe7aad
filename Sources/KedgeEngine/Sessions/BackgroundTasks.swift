internal import KedgeLocks

/// Work that goes on after the request that began it was answered; at most one piece for each key.
final class BackgroundTasks<Key: Hashable & Sendable>: Sendable {
    private struct State {
        var tasks: [Key: Task<Void, Never>] = [:]
        var isClosed = false
    }

    private let state = Mutex(State())

    /// Begins the work unless there is some for the key already, or everything is ending.
    func start(_ key: Key, _ work: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            guard !state.isClosed, state.tasks[key] == nil else { return }
            // Cancelled and awaited by `close`.
            state.tasks[key] = Task {
                await work()
                self.state.withLock { _ = $0.tasks.removeValue(forKey: key) }
            }
        }
    }

    /// True while there is work for the key.
    func isRunning(_ key: Key) -> Bool { state.withLock { $0.tasks[key] != nil } }

    /// Cancels everything and waits for its end. Nothing begins afterwards.
    func close() async {
        let tasks = state.withLock { state in
            state.isClosed = true
            return Array(state.tasks.values)
        }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }
}
