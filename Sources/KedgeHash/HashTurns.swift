internal import KedgeLocks

/// The SHA-256 of a file's first bytes, carried on by chunks that come side by side.
///
/// A file is hashed from its start, so chunks take turns: the writer of a chunk borrows the hash, carries
/// it on together with the chunk's own, and announces where it came to once the chunk's digest has
/// matched. From there the next chunk goes on, although the first is not durable yet. The announced step
/// counts when it is accepted and all before it have been.
///
/// What comes in another order is read back by somebody else (``follow(_:)``), who says so while it does.
package final class HashTurns: Sendable {
    /// What one chunk makes of the hash.
    fileprivate struct Step {
        let before: SHA256Hasher
        let after: SHA256Hasher
        var isAccepted = false
    }

    fileprivate struct State {
        var hasher: SHA256Hasher
        var isFollowing = false
        /// Announced and not counted yet, by the offset at which each starts.
        var steps: [Int64: Step] = [:]
        /// Ends of the chunks that are being written and may announce a step.
        var comingEnds: Set<Int64> = []
        var waiting: [(offset: Int64, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state: Mutex<State>

    /// - Parameter hasher: What has been hashed of the file before.
    package init(_ hasher: SHA256Hasher) { state = Mutex(State(hasher: hasher)) }

    /// The hash as far as it counts.
    package var hasher: SHA256Hasher { state.withLock { $0.hasher } }

    /// True when a step that starts where the hash stands is about to count.
    package var hasStepAhead: Bool {
        state.withLock { $0.steps[$0.hasher.byteCount] != nil }
    }

    /// A copy of the hash for a writer that writes from exactly this offset; nil when it is not there.
    package func borrow(at offset: Int64) -> SHA256Hasher? {
        state.withLock { $0.hash(at: offset) }
    }

    /// The same, after waiting for it while the chunk before is being written, at most as long as the
    /// patience lasts.
    ///
    /// - Parameter sleep: Sleeps for the patience; ends early when its task is cancelled.
    package func borrow(
        at offset: Int64, patience: Duration,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) async -> SHA256Hasher? {
        if let hasher = borrow(at: offset) { return hasher }
        guard patience > .zero else { return nil }
        let isOver = Mutex(false)
        // Wakes the waiter below once; cancelled when the hash was faster.
        let timer = Task {
            try await sleep(patience)
            isOver.withLock { $0 = true }
            self.wake(at: offset)
        }
        defer { timer.cancel() }
        await withCheckedContinuation { continuation in
            let mustWait = state.withLock { state in
                let mustWait =
                    state.comingEnds.contains(offset) && state.hash(at: offset) == nil
                    && !isOver.withLock { $0 }
                if mustWait { state.waiting.append((offset, continuation)) }
                return mustWait
            }
            if !mustWait { continuation.resume() }
        }
        return borrow(at: offset)
    }

    /// A chunk that ends there is going to be written; ``leave(end:)`` must follow.
    package func enter(end: Int64) { state.withLock { _ = $0.comingEnds.insert(end) } }

    /// The chunk that ends there has announced its step, or will not.
    package func leave(end: Int64) {
        state.withLock { _ = $0.comingEnds.remove(end) }
        wake(at: end)
    }

    /// A chunk's digest has matched, and the borrowed hash went on over its bytes.
    package func announce(_ after: SHA256Hasher, from before: SHA256Hasher) {
        state.withLock { $0.steps[before.byteCount] = Step(before: before, after: after) }
        wake(at: after.byteCount)
    }

    /// The chunk that starts there is durable. Its step counts when it is its turn.
    package func accept(stepAt start: Int64) {
        state.withLock { state in
            state.steps[start]?.isAccepted = true
            state.advance()
        }
    }

    /// The chunk that starts there is not durable and will not be.
    package func withdraw(stepAt start: Int64) { state.withLock { $0.steps[start] = nil } }

    /// Begins to carry the hash on by other means; ``endFollowing()`` must follow. Meanwhile nobody
    /// borrows it, and no step counts.
    package func beginFollowing() { state.withLock { $0.isFollowing = true } }

    /// The hash has been carried on by other means.
    package func follow(_ hasher: SHA256Hasher) { state.withLock { $0.hasher = hasher } }

    package func endFollowing() {
        let offset = state.withLock { state in
            state.isFollowing = false
            state.advance()
            return state.hasher.byteCount
        }
        wake(at: offset)
    }

    private func wake(at offset: Int64) {
        let woken = state.withLock { state in
            let woken = state.waiting.filter { $0.offset == offset }
            state.waiting.removeAll { $0.offset == offset }
            return woken
        }
        for entry in woken { entry.continuation.resume() }
    }
}

extension HashTurns.State {
    fileprivate func hash(at offset: Int64) -> SHA256Hasher? {
        if hasher.byteCount == offset, !isFollowing { return hasher }
        return steps.values.first { $0.after.byteCount == offset }?.after
    }

    /// Goes on over the steps that are accepted.
    fileprivate mutating func advance() {
        guard !isFollowing else { return }
        while let step = steps[hasher.byteCount], step.isAccepted {
            steps[hasher.byteCount] = nil
            // Another attempt at a chunk before it may have brought other bytes.
            guard step.before.savedState == hasher.savedState else { break }
            hasher = step.after
        }
        // What was passed by other means is of no use any more.
        let offset = hasher.byteCount
        steps = steps.filter { $0.key >= offset }
    }
}
