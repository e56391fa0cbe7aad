internal import KedgeFiles
internal import KedgeHash
internal import KedgeLocks
internal import KedgeModel

/// The SHA-256 of the file's contiguous prefix, kept up with the chunks as they are committed, so
/// that finalize finds it done.
///
/// A chunk whose predecessors have been hashed is hashed while it is written: its writer borrows the
/// hash, announces where it came to when the chunk's digest has matched, and the announced step counts
/// once it and all before it are committed. So chunks that arrive side by side are each hashed as they
/// come, without waiting for each other's syncs. What came in another order is read back.
actor PrefixHash {
    /// What one chunk makes of the hash.
    private struct Step {
        let before: SHA256Hasher
        let after: SHA256Hasher
        var isCommitted = false
    }

    private var hasher: SHA256Hasher
    private var savedOffset: Int64
    private var target: Int64
    private var task: Task<Void, Never>?
    /// Announced and not counted yet, by the offset at which each starts.
    private var steps: [Int64: Step] = [:]
    /// Ends of the chunks that are being written and may announce a step.
    private var comingEnds: Set<Int64> = []
    private var borrowing: [(offset: Int64, continuation: CheckedContinuation<Void, Never>)] = []
    private var failure: (any Error)?
    private var waiting: [(offset: Int64, continuation: CheckedContinuation<Void, Never>)] = []
    private let parts: EngineParts

    /// Goes on from what was stored; a state that cannot be read starts from the first byte.
    init(restoring checkpoint: HashCheckpoint?, parts: EngineParts) {
        let restored = checkpoint.flatMap { SHA256Hasher(savedState: $0.state) }
        hasher = restored ?? SHA256Hasher()
        savedOffset = hasher.byteCount
        target = hasher.byteCount
        self.parts = parts
    }

    /// Offset up to which the hash has come.
    var offset: Int64 { hasher.byteCount }

    /// True while bytes are being read back.
    var isFollowing: Bool { task != nil }

    /// True when the hash will go on without being asked.
    private var isGoingOn: Bool { task != nil || steps[hasher.byteCount] != nil }

    /// The digest of the first ``offset`` bytes.
    var digest: SHA256Digest { hasher.digest() }

    /// A copy of the hash for a writer that writes from exactly this offset; nil when it is not there.
    func borrow(at offset: Int64) -> SHA256Hasher? {
        if hasher.byteCount == offset, task == nil { return hasher }
        return steps.values.first { $0.after.byteCount == offset }?.after
    }

    /// The same, after waiting for it while the chunk before is being written, at most as long as the
    /// patience lasts.
    func borrow(at offset: Int64, patience: Duration) async -> SHA256Hasher? {
        if let hasher = borrow(at: offset) { return hasher }
        guard comingEnds.contains(offset), patience > .zero else { return nil }
        // Wakes the waiter below once; cancelled when the hash was faster.
        let timer = Task { [clock = parts.timer] in
            try await clock.sleep(for: patience)
            self.wakeBorrowers(at: offset)
        }
        defer { timer.cancel() }
        await withCheckedContinuation { borrowing.append((offset, $0)) }
        return borrow(at: offset)
    }

    /// A chunk that ends there is going to be written; ``leave(end:)`` must follow.
    func enter(end: Int64) { comingEnds.insert(end) }

    /// The chunk that ends there has announced its step, or will not.
    func leave(end: Int64) {
        comingEnds.remove(end)
        wakeBorrowers(at: end)
    }

    /// A chunk's digest has matched, and the borrowed hash went on over its bytes.
    func announce(_ after: SHA256Hasher, from before: SHA256Hasher) {
        steps[before.byteCount] = Step(before: before, after: after)
        wakeBorrowers(at: after.byteCount)
    }

    /// The chunk that starts there was committed. Its step counts when it is its turn.
    func accept(stepAt start: Int64) {
        steps[start]?.isCommitted = true
        advance()
    }

    /// The chunk that starts there was not committed.
    func withdraw(stepAt start: Int64) { steps[start] = nil }

    /// Goes on over the steps that are committed.
    private func advance() {
        guard task == nil else { return }
        while let step = steps[hasher.byteCount], step.isCommitted {
            steps[hasher.byteCount] = nil
            // Another attempt at a chunk before it may have brought other bytes.
            guard step.before.savedState == hasher.savedState else { break }
            hasher = step.after
            target = max(target, hasher.byteCount)
        }
        // What reading back has passed is of no use any more.
        steps = steps.filter { $0.key >= hasher.byteCount }
        wake()
    }

    /// The hash's state when it went on since the last save, for the next transaction.
    func checkpointToSave() -> HashCheckpoint? {
        guard hasher.byteCount > savedOffset else { return nil }
        savedOffset = hasher.byteCount
        return HashCheckpoint(hasher)
    }

    /// Reads committed bytes up to `end` in the background.
    func follow(
        to end: Int64, area: @escaping @Sendable () async throws -> any StagingArea
    ) {
        target = max(target, end)
        // A step that starts here is about to count.
        guard task == nil, hasher.byteCount < target, steps[hasher.byteCount] == nil else { return }
        failure = nil
        // Ends by itself at the target; whoever needs the hash waits in `wait(for:)`.
        task = Task { await self.run(area: area) }
    }

    /// Waits until the hash has reached the offset, failed, or the patience is over.
    ///
    /// - Returns: True when it has reached the offset.
    func wait(for offset: Int64, patience: Duration) async throws -> Bool {
        let isOver = Mutex(patience <= .zero)
        // Wakes the waiter below once; cancelled when the hash was faster.
        let timer = Task { [clock = parts.timer] in
            try await clock.sleep(for: patience)
            isOver.withLock { $0 = true }
            self.wakeAll()
        }
        defer { timer.cancel() }
        await withTaskCancellationHandler {
            while hasher.byteCount < offset, isGoingOn, !isOver.withLock({ $0 }),
                !Task.isCancelled
            {
                await withCheckedContinuation { waiting.append((offset, $0)) }
            }
        } onCancel: {
            // Ends at once; nobody needs to wait for it.
            Task { await self.wakeAll() }
        }
        if hasher.byteCount < offset, let failure { throw failure }
        return hasher.byteCount >= offset
    }

    private func run(area: @Sendable () async throws -> any StagingArea) async {
        do {
            let staging = try await area()
            while hasher.byteCount < target {
                let buffer = parts.buffers.take()
                defer { parts.buffers.give(buffer) }
                let start = hasher
                try await staging.read(
                    into: buffer, at: start.byteCount, byteCount: target - start.byteCount)
                let advanced = try await parts.pool.run {
                    var hasher = start
                    hasher.update(buffer.bytes)
                    return hasher
                }
                hasher = advanced
                wake()
            }
        } catch {
            failure = error
        }
        task = nil
        advance()
        wakeAll()
        wakeBorrowers(at: hasher.byteCount)
    }

    private func wake() {
        let reached = waiting.filter { $0.offset <= hasher.byteCount }
        waiting.removeAll { $0.offset <= hasher.byteCount }
        for entry in reached { entry.continuation.resume() }
    }

    private func wakeBorrowers(at offset: Int64) {
        let woken = borrowing.filter { $0.offset == offset }
        borrowing.removeAll { $0.offset == offset }
        for entry in woken { entry.continuation.resume() }
    }

    private func wakeAll() {
        let all = waiting
        waiting = []
        for entry in all { entry.continuation.resume() }
    }
}
