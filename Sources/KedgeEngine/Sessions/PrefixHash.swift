internal import KedgeFiles
internal import KedgeHash
internal import KedgeLocks
internal import KedgeModel

/// The SHA-256 of the file's contiguous prefix, updated as chunks are committed, so that finalize
/// finds it done.
///
/// Chunks are hashed for the file in order while they are written (``fileHashing``). Bytes that
/// arrive in another order are read back.
actor PrefixHash {
    /// The ordered hashing of chunks while they are written.
    nonisolated let fileHashing: OrderedHashing
    private var savedOffset: Int64
    private var target: Int64
    private var task: Task<Void, Never>?
    private var failure: (any Error)?
    /// Committed chunks whose stored bytes do not match their digest. The hash ends before the
    /// first of them.
    private var damagedIndexes: [Int] = []
    /// Offset after the last chunk that was compared with its digest; after damage, the hash does
    /// not reach it.
    private var comparedEnd: Int64 = 0
    private var waiting: [(offset: Int64, continuation: CheckedContinuation<Void, Never>)] = []
    private let context: EngineContext

    /// Continues from a stored checkpoint; an unreadable one starts over at the first byte.
    init(restoring checkpoint: HashCheckpoint?, context: EngineContext) {
        let restored = checkpoint.flatMap { SHA256Hasher(savedState: $0.state) }
        let hasher = restored ?? SHA256Hasher()
        fileHashing = OrderedHashing(hasher)
        savedOffset = hasher.byteCount
        target = hasher.byteCount
        self.context = context
    }

    /// Offset after the last hashed byte.
    var offset: Int64 { fileHashing.hasher.byteCount }

    /// True while bytes are being read back.
    var isReadingBack: Bool { task != nil }

    /// True when the hash will advance without another call.
    private var isGoingOn: Bool { task != nil || fileHashing.hasStepAhead }

    /// The digest of the first ``offset`` bytes.
    var digest: SHA256Digest { fileHashing.hasher.digest() }

    /// Accepts the proposed step of the committed chunk that starts at the offset. It counts once
    /// all steps before it do.
    func accept(stepAt start: Int64) {
        fileHashing.accept(stepAt: start)
        wake()
    }

    /// Returns the hash's state for the next transaction; nil if it has not advanced since the last
    /// save, and after damage, because the rows then lose their checkpoint.
    func checkpointToSave() -> HashCheckpoint? {
        let hasher = fileHashing.hasher
        guard hasher.byteCount > savedOffset, damagedIndexes.isEmpty else { return nil }
        savedOffset = hasher.byteCount
        return HashCheckpoint(hasher)
    }

    /// Adopts the checkpoint of another node if it is further ahead. Not after damage: that node
    /// may have hashed its own copies of bytes that are stored damaged.
    func adopt(_ checkpoint: HashCheckpoint) {
        guard checkpoint.offset > offset, damagedIndexes.isEmpty, task == nil,
            !fileHashing.hasStepAhead,
            let hasher = SHA256Hasher(savedState: checkpoint.state)
        else { return }
        fileHashing.beginReadingBack()
        fileHashing.readBack(hasher)
        fileHashing.endReadingBack()
        savedOffset = max(savedOffset, hasher.byteCount)
        failure = nil
        wake()
    }

    /// False after damage in a store that cannot replace one chunk: all are needed again.
    private var canGoOn: Bool { damagedIndexes.isEmpty || context.traits.replacesSingleChunks }

    /// Offset of the next chunk to read back: after damage, chunks are only compared.
    private var nextOffset: Int64 { damagedIndexes.isEmpty ? offset : max(offset, comparedEnd) }

    /// Reads committed chunks up to `end` in the background, as far as this node can, and compares
    /// each with its digest: bytes that were damaged since must not get into the file's hash. Goes
    /// on after a damaged chunk, so that all damage is reported at once, and reads no chunk again.
    ///
    /// - Parameters:
    ///   - end: The end of a chunk.
    ///   - chunk: Returns the committed chunk that holds an offset; nil when it is not committed
    ///     any more.
    ///   - save: Records a checkpoint from which other nodes can continue. Called only for stores
    ///     that share them.
    func readBack(
        to end: Int64, area: @escaping @Sendable () async throws -> any StagingArea,
        chunk: @escaping @Sendable (Int64) async throws -> StoredChunk?,
        save: @escaping @Sendable (HashCheckpoint) async throws -> Void
    ) {
        target = max(target, end)
        // A step that starts at the current offset is about to count.
        guard task == nil, nextOffset < target, !fileHashing.hasStepAhead, canGoOn else { return }
        failure = nil
        fileHashing.beginReadingBack()
        // Ends by itself at the target; callers that need the hash wait in `wait(for:timeout:)`.
        task = Task { await self.run(area: area, chunk: chunk, save: save) }
    }

    /// Waits until the hash has reached the offset or failed, at most for the given timeout.
    ///
    /// - Parameter stopsAtDamage: Whether to return at the first damaged chunk, instead of after
    ///   the chunks behind it were compared.
    /// - Returns: True when it has reached the offset.
    func wait(
        for offset: Int64, timeout: Duration, stopsAtDamage: Bool = false
    ) async throws -> Bool {
        let isOver = Mutex(timeout <= .zero)
        // Wakes the waiter below once; cancelled when the hash was faster.
        let timer = Task { [clock = context.timer] in
            try await clock.sleep(for: timeout)
            isOver.withLock { $0 = true }
            self.wakeAll()
        }
        defer { timer.cancel() }
        await withTaskCancellationHandler {
            while self.offset < offset, isGoingOn, !isOver.withLock({ $0 }),
                !Task.isCancelled, !(stopsAtDamage && !damagedIndexes.isEmpty)
            {
                await withCheckedContinuation { waiting.append((offset, $0)) }
            }
        } onCancel: {
            // Ends at once, so it need not be awaited.
            Task { await self.wakeAll() }
        }
        if self.offset < offset, let failure { throw failure }
        return self.offset >= offset
    }

    private func run(
        area: @Sendable () async throws -> any StagingArea,
        chunk: @Sendable (Int64) async throws -> StoredChunk?,
        save: @Sendable (HashCheckpoint) async throws -> Void
    ) async {
        var problem: (any Error)?
        do {
            let staging = try await area()
            while nextOffset < target, canGoOn {
                if offset - savedOffset >= context.configuration.sharedHashStep {
                    try await share(save)
                }
                guard let next = try await chunk(nextOffset) else {
                    // The session is not in memory any more.
                    target = nextOffset
                    break
                }
                try await readBack(next, from: staging)
                wake()
            }
        } catch ByteStoreError.notAssembled {
            // Another node may have these bytes locally. Otherwise they are read once the file is
            // assembled.
        } catch {
            problem = error
        }
        do {
            try await share(save)
        } catch {
            // The next checkpoint records it, or the bytes are hashed again.
        }
        // A waiter that sees damage invalidates chunks: no checkpoint may be saved after that.
        failure = damagedIndexes.isEmpty ? problem : DamagedChunks(indexes: damagedIndexes)
        task = nil
        fileHashing.endReadingBack()
        wakeAll()
    }

    /// Reads a chunk, and hashes it for the file unless a chunk before it is damaged.
    private func readBack(_ chunk: StoredChunk, from staging: any StagingArea) async throws {
        if let after = try await verified(chunk, from: staging) {
            if damagedIndexes.isEmpty { fileHashing.readBack(after) }
        } else {
            damagedIndexes.append(chunk.index)
            if damagedIndexes.count == 1 { wakeAll() }
        }
        comparedEnd = chunk.range.end
    }

    /// Hashes the rest of a chunk for the file, and all of it for the chunk.
    ///
    /// - Returns: The file's hash after the chunk; nil when the stored bytes are damaged.
    private func verified(
        _ chunk: StoredChunk, from staging: any StagingArea
    ) async throws -> SHA256Hasher? {
        if let after = try await hash(chunk, from: staging) { return after }
        // Only what is stored counts: this node's copies may be old, or damaged in memory.
        await staging.dropCached(chunk.range.end - chunk.range.start, at: chunk.range.start)
        return try await hash(chunk, from: staging)
    }

    private func hash(
        _ chunk: StoredChunk, from staging: any StagingArea
    ) async throws -> SHA256Hasher? {
        let start = chunk.range.start
        let hasher = fileHashing.hasher
        context.readBackBytes.add(chunk.range.byteCount)
        do {
            guard damagedIndexes.isEmpty else {
                let own = try await context.hash(
                    from: SHA256Hasher(), upTo: chunk.range.end - start
                ) { try await staging.read(into: $0, at: start + $1, byteCount: $2) }
                return own.digest() == chunk.digest ? hasher : nil
            }
            // A checkpoint of an earlier version may lie inside of the chunk.
            let known = try await context.hash(
                from: SHA256Hasher(), upTo: hasher.byteCount - start
            ) { try await staging.read(into: $0, at: start + $1, byteCount: $2) }
            let (file, own) = try await context.hash(
                file: hasher, chunk: known, upTo: chunk.range.end
            ) {
                fileHashing.noteReadBack(to: $1)
                try await staging.read(into: $0, at: $1, byteCount: $2)
            }
            return own.digest() == chunk.digest ? file : nil
        } catch ByteStoreError.notFound where context.traits.replacesSingleChunks {
            // The staging file ends before the chunk does.
            return nil
        }
    }

    /// Saves a checkpoint if nodes share them. Other nodes, or this one after a crash,
    /// continue from it.
    private func share(_ save: (HashCheckpoint) async throws -> Void) async throws {
        guard context.traits.sharesCheckpoints, let checkpoint = checkpointToSave() else { return }
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

/// A committed chunk and its place in the file.
struct StoredChunk: Sendable {
    let index: Int
    let range: ByteRange
    let digest: SHA256Digest
}

/// The stored bytes of committed chunks do not match their digests any more.
struct DamagedChunks: Error {
    /// At least one.
    let indexes: [Int]
}
