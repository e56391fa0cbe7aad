internal import KedgeFiles
internal import KedgeHash
internal import KedgeLocks
internal import KedgeModel

/// The SHA-256 of the file's contiguous prefix, kept up with the chunks as they are committed, so
/// that finalize finds it done.
///
/// Chunks are hashed for the file in turn while they are written (``turns``); what came in another order
/// is read back.
actor PrefixHash {
    /// How chunks carry the hash on.
    nonisolated let turns: HashTurns
    private var savedOffset: Int64
    private var target: Int64
    private var task: Task<Void, Never>?
    private var failure: (any Error)?
    private var waiting: [(offset: Int64, continuation: CheckedContinuation<Void, Never>)] = []
    private let parts: EngineParts

    /// Goes on from what was stored; a state that cannot be read starts from the first byte.
    init(restoring checkpoint: HashCheckpoint?, parts: EngineParts) {
        let restored = checkpoint.flatMap { SHA256Hasher(savedState: $0.state) }
        let hasher = restored ?? SHA256Hasher()
        turns = HashTurns(hasher)
        savedOffset = hasher.byteCount
        target = hasher.byteCount
        self.parts = parts
    }

    /// Offset up to which the hash has come.
    var offset: Int64 { turns.hasher.byteCount }

    /// True while bytes are being read back.
    var isFollowing: Bool { task != nil }

    /// True when the hash will go on without being asked.
    private var isGoingOn: Bool { task != nil || turns.hasStepAhead }

    /// The digest of the first ``offset`` bytes.
    var digest: SHA256Digest { turns.hasher.digest() }

    /// The chunk that starts there was committed; its step counts when it is its turn.
    func accept(stepAt start: Int64) {
        turns.accept(stepAt: start)
        wake()
    }

    /// The hash's state when it went on since the last save, for the next transaction.
    func checkpointToSave() -> HashCheckpoint? {
        let hasher = turns.hasher
        guard hasher.byteCount > savedOffset else { return nil }
        savedOffset = hasher.byteCount
        return HashCheckpoint(hasher)
    }

    /// Goes on from where another node has come to, if that is farther.
    func adopt(_ checkpoint: HashCheckpoint) {
        guard checkpoint.offset > offset, task == nil, !turns.hasStepAhead,
            let hasher = SHA256Hasher(savedState: checkpoint.state)
        else { return }
        turns.beginFollowing()
        turns.follow(hasher)
        turns.endFollowing()
        savedOffset = max(savedOffset, hasher.byteCount)
        wake()
    }

    /// Reads committed bytes up to `end` in the background, as far as this node can.
    ///
    /// - Parameter save: Records how far the hash has come; called where other nodes go on from there.
    func follow(
        to end: Int64, area: @escaping @Sendable () async throws -> any StagingArea,
        save: @escaping @Sendable (HashCheckpoint) async throws -> Void
    ) {
        target = max(target, end)
        // A step that starts here is about to count.
        guard task == nil, offset < target, !turns.hasStepAhead else { return }
        failure = nil
        turns.beginFollowing()
        // Ends by itself at the target; whoever needs the hash waits in `wait(for:)`.
        task = Task { await self.run(area: area, save: save) }
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
            while self.offset < offset, isGoingOn, !isOver.withLock({ $0 }),
                !Task.isCancelled
            {
                await withCheckedContinuation { waiting.append((offset, $0)) }
            }
        } onCancel: {
            // Ends at once; nobody needs to wait for it.
            Task { await self.wakeAll() }
        }
        if self.offset < offset, let failure { throw failure }
        return self.offset >= offset
    }

    private func run(
        area: @Sendable () async throws -> any StagingArea,
        save: @Sendable (HashCheckpoint) async throws -> Void
    ) async {
        do {
            let staging = try await area()
            while offset < target {
                if offset - savedOffset >= parts.configuration.sharedHashStep {
                    try await share(save)
                }
                let buffer = parts.buffers.take()
                defer { parts.buffers.give(buffer) }
                let start = turns.hasher
                try await staging.read(
                    into: buffer, at: start.byteCount, byteCount: target - start.byteCount)
                let advanced = try await parts.pool.run {
                    var hasher = start
                    hasher.update(buffer.bytes)
                    return hasher
                }
                turns.follow(advanced)
                wake()
            }
        } catch ByteStoreError.notAssembled {
            // Another node may have these bytes at hand; or they are read when the file is assembled.
        } catch {
            failure = error
        }
        do {
            try await share(save)
        } catch {
            // It is recorded with the next chunk, or computed again.
        }
        task = nil
        turns.endFollowing()
        wakeAll()
    }

    /// Records how far the hash has come where that is of use to other nodes, or after a death.
    private func share(_ save: (HashCheckpoint) async throws -> Void) async throws {
        guard parts.bytes.assembles, let checkpoint = checkpointToSave() else { return }
        try await save(checkpoint)
    }

    private func wake() {
        let offset = offset
        let reached = waiting.filter { $0.offset <= offset }
        waiting.removeAll { $0.offset <= offset }
        for entry in reached { entry.continuation.resume() }
    }

    private func wakeAll() {
        let all = waiting
        waiting = []
        for entry in all { entry.continuation.resume() }
    }
}
