internal import KedgeFiles
internal import KedgeHash
internal import KedgeLocks
internal import KedgeModel

/// The SHA-256 of the file's contiguous prefix, kept up with the chunks as they are committed, so
/// that finalize finds it done.
///
/// A chunk that arrives exactly where the hash stands is hashed while it is written (``borrow``,
/// ``accept(_:)``); chunks that came out of order are read back, usually from the page cache.
actor PrefixHash {
    private var hasher: SHA256Hasher
    private var savedOffset: Int64
    private var target: Int64
    private var task: Task<Void, Never>?
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

    /// The digest of the first ``offset`` bytes.
    var digest: SHA256Digest { hasher.digest() }

    /// A copy of the hash for a writer that will write from exactly this offset, or nil.
    func borrow(at offset: Int64) -> SHA256Hasher? {
        hasher.byteCount == offset && task == nil ? hasher : nil
    }

    /// Takes over a borrowed hash that went on over one committed chunk starting at `start`.
    func accept(_ advanced: SHA256Hasher, startingAt start: Int64) {
        guard hasher.byteCount == start, task == nil else { return }
        hasher = advanced
        target = max(target, hasher.byteCount)
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
        guard task == nil, hasher.byteCount < target else { return }
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
            while hasher.byteCount < offset, task != nil, !isOver.withLock({ $0 }),
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
        wakeAll()
    }

    private func wake() {
        let reached = waiting.filter { $0.offset <= hasher.byteCount }
        waiting.removeAll { $0.offset <= hasher.byteCount }
        for entry in reached { entry.continuation.resume() }
    }

    private func wakeAll() {
        let all = waiting
        waiting = []
        for entry in all { entry.continuation.resume() }
    }
}
