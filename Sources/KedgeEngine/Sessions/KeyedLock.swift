/// A lock for each key. Callers wait in order.
actor KeyedLock<Key: Hashable & Sendable> {
    private var held: Set<Key> = []
    private var waiting: [Key: [CheckedContinuation<Void, Never>]] = [:]

    /// Runs the body while no other body runs for the same key.
    nonisolated func withLock<Result: Sendable>(
        _ key: Key, _ body: () async throws -> Result
    ) async throws -> Result {
        await acquire(key)
        do {
            let result = try await body()
            await release(key)
            return result
        } catch {
            await release(key)
            throw error
        }
    }

    /// True while a body runs for the key.
    func isHeld(_ key: Key) -> Bool { held.contains(key) }

    private func acquire(_ key: Key) async {
        guard held.contains(key) else {
            held.insert(key)
            return
        }
        // The lock stays held while it is handed over, so no other caller can take it in between.
        await withCheckedContinuation { waiting[key, default: []].append($0) }
    }

    private func release(_ key: Key) {
        guard var queue = waiting[key], !queue.isEmpty else {
            held.remove(key)
            return
        }
        let next = queue.removeFirst()
        waiting[key] = queue.isEmpty ? nil : queue
        next.resume()
    }
}
