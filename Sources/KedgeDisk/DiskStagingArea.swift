internal import KedgeEngine
internal import KedgeFiles
internal import KedgeLocks
internal import KedgeModel

/// One staging file, or the file of a rival beside it, through one descriptor.
///
/// Syncs of one area run one at a time, and callers that arrive during one share the next. That
/// saves flushes and closes a gap: a sync that starts just after a failed one would succeed,
/// because the kernel reports a failure once and then considers the pages clean (fsync(2)).
final class DiskStagingArea: StagingArea {
    private typealias SyncResult = Result<Void, ByteStoreError>

    private struct State {
        /// Nil once closed. Calls in progress keep the file, so its descriptor number is not reused
        /// under them.
        var file: (any OpenFile)?
        var failure: ByteStoreError?
        var isSyncing = false
        /// A directory to sync before the file's bytes are durable, because the file's name is new.
        var unsyncedParent: String?
        /// Callers that wait for the next sync.
        var waiting: [CheckedContinuation<SyncResult, Never>] = []
    }

    /// Minimum size of an uncached write; smaller ones go through the page cache.
    private static let uncachedByteCount = 128 << 10

    private let state: Mutex<State>
    private let store: DiskStore
    private let key: StagingKey
    /// Offset of the file's first byte in the session.
    private let origin: Int64

    init(
        _ file: any OpenFile, of key: StagingKey, store: DiskStore, origin: Int64 = 0,
        unsyncedParent: String? = nil
    ) {
        self.state = Mutex(State(file: file, unsyncedParent: unsyncedParent))
        self.store = store
        self.key = key
        self.origin = origin
    }

    func write(
        _ buffer: IOBuffer, at offset: Int64, isCached: Bool,
        after work: @escaping @Sendable () -> Void
    ) async throws {
        let file = try usableFile()
        // Each small uncached write would wait for the disk.
        let isCached = isCached || buffer.count < Self.uncachedByteCount
        try await store.onPool { [origin] in
            work()
            if isCached {
                try file.write(buffer.bytes, at: offset - origin)
            } else {
                try file.writeUncached(buffer.bytes, at: offset - origin)
            }
        }
    }

    var isInDoubt: Bool { state.withLock { $0.failure != nil } }

    func read(into buffer: IOBuffer, at offset: Int64, byteCount: Int64) async throws {
        let file = try usableFile()
        try await store.onPool { [origin] in
            try file.fill(buffer, at: offset - origin, byteCount: byteCount)
        }
    }

    func dropCached(_ byteCount: Int64, at offset: Int64) async {
        // A closed area has nothing to drop.
        try? await store.onPool { [self] in
            try usableFile().dropCached(byteCount, at: offset - origin)
        }
    }

    func openRival(_ range: ChunkRange, isKept: Bool) async throws -> any StagingArea {
        try await store.openRival(of: key, range, isKept: isKept)
    }

    func keepAsRival(_ range: ChunkRange, location: String?) async throws -> String? {
        let file = try usableFile()
        try await store.onPool { [store, key] in
            try store.copyToRival(RivalName(key: key, index: range.index), range, from: file)
        }
        return nil
    }

    func removeRival(ofChunk index: Int) async throws {
        try await store.removeRival(RivalName(key: key, index: index))
    }

    func savePartial(_ range: ChunkRange, after earlier: String?) async throws -> String? {
        try await sync()
        guard let parent = state.withLock({ $0.unsyncedParent }) else { return nil }
        try await store.onPool { [store] in try store.names.sync(parent) }
        state.withLock { $0.unsyncedParent = nil }
        return nil
    }

    func saveChunk(
        _ range: ChunkRange, digest: SHA256Digest, after earlier: String?
    ) async throws -> String? {
        try await sync()
        return nil
    }

    /// Makes all bytes durable that were written before the call.
    private func sync() async throws {
        let result = await withCheckedContinuation { continuation in
            let mustStart = state.withLock { state in
                state.waiting.append(continuation)
                defer { state.isSyncing = true }
                return !state.isSyncing
            }
            // The result is not awaited: every caller waits for its own continuation.
            if mustStart { _ = store.pool.start { self.runSyncs() } }
        }
        try result.get()
    }

    func close() async {
        // All bytes that matter are synced, so an error at close loses nothing. The last user of
        // the file closes it.
        try? await store.onPool { [self] in state.withLock { $0.file = nil } }
    }

    private func usableFile() throws(ByteStoreError) -> any OpenFile {
        try state.withLock { state throws(ByteStoreError) in
            if let failure = state.failure { throw failure }
            guard let file = state.file else { throw .failed("the staging area is closed") }
            return file
        }
    }

    /// Syncs until no caller waits; blocks.
    private func runSyncs() {
        while let waiting = takeWaiting() {
            let result = SyncResult { () throws(ByteStoreError) in
                do {
                    try usableFile().syncData()
                } catch {
                    throw ByteStoreError(error)
                }
            }
            if case .failure(let error) = result { poison(error) }
            for continuation in waiting { continuation.resume(returning: result) }
        }
    }

    private func takeWaiting() -> [CheckedContinuation<SyncResult, Never>]? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isSyncing = false
                return nil
            }
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    /// Makes all later calls fail: bytes written since the last successful sync may be lost.
    private func poison(_ error: ByteStoreError) {
        state.withLock { state in
            if state.file != nil, state.failure == nil { state.failure = error }
        }
    }
}
