internal import KedgeLocks

/// Tasks that outlive the request that started them; at most one for each key.
final class BackgroundTasks<Key: Hashable & Sendable>: Sendable {
    private struct State {
        var tasks: [Key: Task<Void, Never>] = [:]
        var isClosed = false
    }

    private let state = Mutex(State())

    /// Starts the work, unless a task for the key is running or everything is ending.
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

    /// True while a task for the key is running.
    func isRunning(_ key: Key) -> Bool { state.withLock { $0.tasks[key] != nil } }

    /// Cancels all tasks and waits for them. No task starts afterwards.
    func close() async {
        let tasks = state.withLock { state in
            state.isClosed = true
            return Array(state.tasks.values)
        }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }
}
