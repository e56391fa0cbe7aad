internal import KedgeLocks

/// The SHA-256 of a file's contiguous prefix, computed while chunks arrive in parallel.
///
/// A file is hashed from its start, so chunks are hashed in order. Each chunk is one *step* of the
/// file's hash:
///
/// - The writer of a chunk copies the hash (``makeHasher(at:)``) and updates the copy together with
///   the chunk's own hash.
/// - When the chunk's digest has matched, the writer proposes the step (``propose(_:from:)``). The
///   next chunk can continue from its result, although this chunk is not durable yet.
/// - When the chunk is durable, the writer accepts the step (``accept(stepAt:)``). The step counts
///   once all earlier steps are accepted.
/// - When the chunk cannot become durable, the writer rolls the step back (``rollBack(stepAt:)``).
///
/// Chunks that arrive out of order have no step. Another task reads them back (``readBack(_:)``)
/// between ``beginReadingBack()`` and ``endReadingBack()``.
///
/// Where chunks arrive side by side as fast as they are hashed, each waits for its turn
/// (``makeHasher(at:waiting:sleep:)``).
package final class OrderedHashing: Sendable {
    /// The file's hash before and after one chunk.
    fileprivate struct Step {
        let before: SHA256Hasher
        let after: SHA256Hasher
        var isAccepted = false
    }

    /// A chunk that is being written and may propose a step.
    fileprivate struct ComingChunk {
        let end: Int64
        /// Number of its bytes that were hashed for the file.
        var hashedByteCount: Int64 = 0
    }

    fileprivate struct State {
        var hasher: SHA256Hasher
        var isReadingBack = false
        /// Offset up to which bytes were read back, also inside of a chunk.
        var readBackOffset: Int64 = 0
        /// Proposed steps that do not count yet, by start offset.
        var steps: [Int64: Step] = [:]
        /// By start offset. As many as a session has concurrent writers.
        var comingChunks: [Int64: ComingChunk] = [:]
        var waiting: [(offset: Int64, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state: Mutex<State>

    /// - Parameter hasher: The hash of the bytes so far.
    package init(_ hasher: SHA256Hasher) { state = Mutex(State(hasher: hasher)) }

    /// The hash of all bytes that count.
    package var hasher: SHA256Hasher { state.withLock { $0.hasher } }

    /// True when a step starts at the end of the hashed bytes.
    package var hasStepAhead: Bool {
        state.withLock { $0.steps[$0.hasher.byteCount] != nil }
    }

    /// Returns a copy of the hash at exactly this offset; nil when no such hash is available.
    package func makeHasher(at offset: Int64) -> SHA256Hasher? {
        state.withLock { $0.hash(at: offset) }
    }

    /// Limits of a wait for the hash.
    package struct Wait: Equatable, Sendable {
        /// Limit of the whole wait; zero does not wait.
        package var timeout: Duration
        /// Time in which the hash must advance by ``minByteCount``.
        package var interval: Duration
        package var minByteCount: Int64

        package init(timeout: Duration, interval: Duration, minByteCount: Int64) {
            self.timeout = timeout
            self.interval = interval
            self.minByteCount = minByteCount
        }
    }

    /// Returns a copy of the hash at exactly this offset. Waits for it while the hash advances
    /// towards the offset: with the chunks before it, which are being written, or by reading back.
    ///
    /// - Parameter sleep: Sleeps for a duration; ends early when its task is cancelled.
    /// - Returns: Nil when no such hash is available in time.
    package func makeHasher(
        at offset: Int64, waiting wait: Wait,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) async -> SHA256Hasher? {
        if let hasher = makeHasher(at: offset) { return hasher }
        guard wait.timeout > .zero else { return nil }
        let isOver = Mutex(false)
        // The timers wake the waiter; they are cancelled when the hash came first.
        let timer = Task {
            try await sleep(wait.timeout)
            isOver.withLock { $0 = true }
            self.wake(at: offset)
        }
        defer { timer.cancel() }
        return await withTaskCancellationHandler {
            await self.makeHasher(at: offset, waiting: wait, sleep: sleep) {
                isOver.withLock { $0 }
            }
        } onCancel: {
            isOver.withLock { $0 = true }
            self.wake(at: offset)
        }
    }

    private func makeHasher(
        at offset: Int64, waiting wait: Wait,
        sleep: @escaping @Sendable (Duration) async throws -> Void,
        until isOver: @Sendable () -> Bool
    ) async -> SHA256Hasher? {
        while let before = progress(towards: offset) {
            let isIntervalOver = Mutex(false)
            let ticker = Task {
                try await sleep(wait.interval)
                isIntervalOver.withLock { $0 = true }
                self.wake(at: offset)
            }
            defer { ticker.cancel() }
            await waitForChange(at: offset) { isOver() || isIntervalOver.withLock { $0 } }
            if let hasher = makeHasher(at: offset) { return hasher }
            if isOver() { return nil }
            // Woken early, by a chunk that left or by the end of a read-back: looks again.
            guard isIntervalOver.withLock({ $0 }) else { continue }
            guard let now = progress(towards: offset), now - before >= wait.minByteCount else {
                return nil
            }
        }
        return nil
    }

    /// Waits until something happens at the offset, unless the hash is there or will not come.
    private func waitForChange(at offset: Int64, unless isOver: () -> Bool) async {
        await withCheckedContinuation { continuation in
            let mustWait = state.withLock { state in
                let mustWait =
                    state.hash(at: offset) == nil && state.progress(towards: offset) != nil
                    && !isOver()
                if mustWait { state.waiting.append((offset, continuation)) }
                return mustWait
            }
            if !mustWait { continuation.resume() }
        }
    }

    private func progress(towards offset: Int64) -> Int64? {
        state.withLock { $0.progress(towards: offset) }
    }

    /// Registers a chunk that is about to be written; ``leave(at:)`` must follow.
    package func enter(_ start: Int64, end: Int64) {
        state.withLock { $0.comingChunks[start] = ComingChunk(end: end) }
    }

    /// Notes how many bytes of the chunk that starts at the offset were hashed for the file. Chunks
    /// after it wait only while this number rises.
    package func noteHashed(_ byteCount: Int64, at start: Int64) {
        state.withLock { $0.comingChunks[start]?.hashedByteCount = byteCount }
    }

    /// Removes the chunk that starts at the offset: its step was proposed, or never will be.
    package func leave(at start: Int64) {
        guard let chunk = state.withLock({ $0.comingChunks.removeValue(forKey: start) }) else {
            return
        }
        wake(at: chunk.end)
    }

    /// Proposes the step of a chunk whose digest has matched. The next chunk can continue from it.
    package func propose(_ after: SHA256Hasher, from before: SHA256Hasher) {
        state.withLock { $0.steps[before.byteCount] = Step(before: before, after: after) }
        wake(at: after.byteCount)
    }

    /// Accepts the proposed step of a chunk that is durable. It counts after all earlier steps.
    package func accept(stepAt start: Int64) {
        state.withLock { state in
            state.steps[start]?.isAccepted = true
            state.advance()
        }
    }

    /// Rolls back the proposed step of a chunk that will not become durable.
    package func rollBack(stepAt start: Int64) { state.withLock { $0.steps[start] = nil } }

    /// Begins to read bytes back for the hash; ``endReadingBack()`` must follow. Until then the
    /// hash at its current offset is not available to writers, and no step counts.
    package func beginReadingBack() { state.withLock { $0.isReadingBack = true } }

    /// Sets the hash after bytes that were read back.
    package func readBack(_ hasher: SHA256Hasher) { state.withLock { $0.hasher = hasher } }

    /// Notes how far bytes were read back, before the hash after them is set. Chunks after them
    /// wait only while this offset or the hash rises.
    package func noteReadBack(to offset: Int64) {
        state.withLock { $0.readBackOffset = offset }
    }

    package func endReadingBack() {
        let offset = state.withLock { state in
            state.isReadingBack = false
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

extension OrderedHashing.State {
    fileprivate func hash(at offset: Int64) -> SHA256Hasher? {
        if hasher.byteCount == offset, !isReadingBack { return hasher }
        return steps.values.first { $0.after.byteCount == offset }?.after
    }

    /// Returns the offset that the hash has reached on its way to this one; nil when nothing leads
    /// there. Rises while the chunks before the offset are hashed one after the other.
    fileprivate func progress(towards offset: Int64) -> Int64? {
        var next = offset
        while let (start, chunk) = comingChunks.first(where: { $0.value.end == next }),
            start < next
        {
            // Nothing of it is hashed: it waits for a chunk before it, or has just begun.
            guard chunk.hashedByteCount == 0 else { return start + chunk.hashedByteCount }
            next = start
        }
        if isReadingBack, hasher.byteCount < next {
            return max(hasher.byteCount, min(readBackOffset, next))
        }
        return next < offset ? next : nil
    }

    /// Applies the steps that are accepted.
    fileprivate mutating func advance() {
        guard !isReadingBack else { return }
        while let step = steps[hasher.byteCount], step.isAccepted {
            steps[hasher.byteCount] = nil
            // A new attempt at an earlier chunk may have changed the bytes before it.
            guard step.before.savedState == hasher.savedState else { break }
            hasher = step.after
        }
        // Drops steps at offsets that are already hashed.
        let offset = hasher.byteCount
        steps = steps.filter { $0.key >= offset }
    }
}
