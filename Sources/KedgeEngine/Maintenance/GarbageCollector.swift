internal import KedgeFiles
internal import KedgeModel
internal import Logging

/// Removes bytes that no row refers to any more.
final class GarbageCollector: Sendable {
    private let context: EngineContext
    private let digestLocks: KeyedLock<SHA256Digest>
    private let garbageCollections = BackgroundTasks<Int>()

    init(context: EngineContext, digestLocks: KeyedLock<SHA256Digest>) {
        self.context = context
        self.digestLocks = digestLocks
    }

    /// Removes garbage. A failure is logged, and the next sweep retries.
    func collectGarbage() async {
        do {
            let now = context.clock.now()
            let end = now.advanced(by: .seconds(300))
            let items = try await context.metadata.claimGarbage(
                now: now, leaseUntil: end, limit: context.traits.garbageBatchSize)
            for item in items { await tryToRemove(item, claimedUntil: end) }
        } catch {
            context.logger.error(
                "garbage collection failed",
                metadata: ["error": "\(String(reflecting: error))"])
        }
    }

    /// Removes garbage after a request that made some. The caller waits for it, unless removing
    /// takes long; then it runs in the background.
    func collectGarbageSoon() async {
        guard context.traits.removesInBackground else { return await collectGarbage() }
        garbageCollections.start(0) { [self] in await collectGarbage() }
    }

    /// Removes one item. A failure is only logged, so that the other items are removed.
    private func tryToRemove(_ garbage: Garbage, claimedUntil end: Timestamp) async {
        do {
            try await remove(garbage, claimedUntil: end)
        } catch {
            context.logger.error(
                "garbage collection failed",
                metadata: ["error": "\(String(reflecting: error))"])
        }
    }

    private func remove(_ garbage: Garbage, claimedUntil end: Timestamp) async throws {
        switch garbage {
        case .staging(let key, let state):
            let needed = try await context.metadata.blobLocation(fromStaging: key)
            try await context.bytes.removeStaging(key, state: state, keeping: needed)
        case .blob(let digest):
            try await digestLocks.withLock(digest) {
                // A finalize may have begun to use the blob again before this lock was held.
                guard try await !context.metadata.isNeeded(digest) else { return }
                for copy in try await context.metadata.supersededBlobs(of: digest)
                where copy.location == nil {
                    try await context.bytes.removeSuperseded(copy)
                    try await context.metadata.forgetSuperseded(copy)
                }
                try await context.bytes.removeBlob(digest)
            }
        }
        try await context.metadata.forgetGarbage(garbage, claimedUntil: end)
    }

    /// Cancels the collection in the background and waits for it.
    func close() async { await garbageCollections.close() }
}
