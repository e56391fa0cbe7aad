internal import KedgeFiles
internal import KedgeModel
internal import Logging

/// Removes bytes that no row refers to any more.
final class GarbageCollector: Sendable {
    private let rows: any GarbageQueue & ScrubRecords
    private let bytes: any ByteStore
    private let clock: any WallClock
    private let logger: Logger
    private let digestLocks: KeyedLock<SHA256Digest>
    private let garbageCollections = BackgroundTasks<Int>()

    init(
        rows: any GarbageQueue & ScrubRecords, bytes: any ByteStore, clock: any WallClock,
        logger: Logger, digestLocks: KeyedLock<SHA256Digest>
    ) {
        self.rows = rows
        self.bytes = bytes
        self.clock = clock
        self.logger = logger
        self.digestLocks = digestLocks
    }

    /// Removes garbage. A failure is logged, and the next sweep retries.
    func collectGarbage() async {
        do {
            let now = clock.now()
            let end = now.advanced(by: .seconds(300))
            let items = try await rows.claimGarbage(
                now: now, leaseUntil: end, limit: bytes.traits.garbageBatchSize)
            for item in items { await tryToRemove(item, claimedUntil: end) }
        } catch {
            logger.error(
                "garbage collection failed",
                metadata: ["error": "\(String(reflecting: error))"])
        }
    }

    /// Removes garbage after a request that made some. The caller waits for it, unless removing
    /// takes long; then it runs in the background.
    func collectGarbageSoon() async {
        guard bytes.traits.removesInBackground else { return await collectGarbage() }
        garbageCollections.start(0) { [self] in await collectGarbage() }
    }

    /// Removes one item. A failure is only logged, so that the other items are removed.
    private func tryToRemove(_ garbage: Garbage, claimedUntil end: Timestamp) async {
        do {
            try await remove(garbage, claimedUntil: end)
        } catch {
            logger.error(
                "garbage removal failed",
                metadata: [
                    "garbage.kind": "\(garbage.kind)", "garbage.key": "\(garbage.key)",
                    "error": "\(String(reflecting: error))",
                ])
        }
    }

    private func remove(_ garbage: Garbage, claimedUntil end: Timestamp) async throws {
        switch garbage {
        case .staging(let key, let state):
            let needed = try await rows.blobLocation(fromStaging: key)
            try await bytes.removeStaging(key, state: state, keeping: needed)
        case .blob(let digest):
            try await digestLocks.withLock(digest) {
                // A finalize may have begun to use the blob again before this lock was held.
                guard try await !rows.isNeeded(digest) else { return }
                for copy in try await rows.supersededBlobs(of: digest)
                where copy.location == nil {
                    try await bytes.removeSuperseded(copy)
                    try await rows.forgetSuperseded(copy)
                }
                try await bytes.removeBlob(digest)
            }
        }
        try await rows.forgetGarbage(garbage, claimedUntil: end)
    }

    /// Cancels the collection in the background and waits for it.
    func close() async { await garbageCollections.close() }
}
