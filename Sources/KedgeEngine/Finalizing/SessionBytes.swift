internal import KedgeModel
internal import Logging

/// The staged bytes of sessions as a whole: their description for the store, their assembly, and
/// the invalidation of those that are lost or damaged.
struct SessionBytes: Sendable {
    let context: EngineContext
    let rows: any ChunkStore & FinalizeQueue
    let registry: SessionRegistry

    /// Makes the bytes of a complete session readable from end to end. Does nothing where they
    /// always are.
    ///
    /// - Throws: ``ByteStoreError/notFound`` when saved chunks are missing.
    func assemble(_ session: LiveSession) async throws {
        guard context.traits.needsAssembly else { return }
        try await context.bytes.assemble(await stagedFile(session))
    }

    /// Returns the description of the session's bytes for the store.
    func stagedFile(_ session: LiveSession) async -> StagedFile {
        let ledger = await session.ledger
        return StagedFile(
            key: ledger.record.stagingKey, byteCount: ledger.record.fileSize ?? 0,
            // Other stores find the bytes without the list, which can be long.
            chunks: context.traits.needsChunkList ? ledger.chunks : [])
    }

    /// Invalidates chunks whose stored bytes do not match their digests; all chunks when the store
    /// cannot replace one alone. Its caller holds the lock on the session's finalize.
    ///
    /// - Parameter revision: The session's revision before the chunks were read.
    /// - Returns: The error for the client, with the missing chunks; `UNAVAILABLE` when the session
    ///   has changed since, so that its bytes may be others.
    func invalidate(
        _ session: LiveSession, _ damage: DamagedChunks, knowing revision: Int64
    ) async throws -> EngineError {
        let changed = EngineError(.unavailable, "The upload has just changed; try again.")
        try await session.refresh()
        guard await !session.isRetired else { return changed }
        let ledger = await session.ledger
        let indexes =
            context.traits.replacesSingleChunks ? damage.indexes : ledger.committed.indexes
        // On one node no revision protects the row from a write under way, whose checkpoint may
        // include the damaged bytes: it ends first.
        if context.fleet == nil { await registry.drop(session.id) }
        do {
            try await rows.invalidateDamagedChunks(
                indexes, of: session.id, knowing: context.fleet == nil ? nil : revision)
        } catch MetadataError.writerReplaced {
            // By another node, or by a first run of this transaction whose answer was lost.
            return changed
        } catch MetadataError.wrongState {
            return changed
        }
        let ranges = ChunkSet(damage.indexes).ranges
        let cause = "the stored bytes of chunks \(ranges) are damaged or missing"
        log(session.id, cause)
        await registry.drop(session.id)
        return EngineError.missingChunks(ChunkSet(indexes).ranges, cause: cause)
    }

    /// Invalidates all acknowledged chunks of a session whose bytes are missing or damaged. The
    /// session is open again, and the client sends them again.
    ///
    /// - Returns: The error for the client, with the missing chunks.
    func invalidate(
        _ session: LiveSession, _ record: SessionRecord, cause: String
    ) async throws -> EngineError {
        log(record.id, cause)
        if record.state == .finalizing { try await rows.reopen(record.id) }
        let indexes = await session.ledger.committed.indexes
        try await rows.invalidateChunks(indexes, of: record.id)
        await registry.drop(record.id)
        let missing = record.layout.chunkCount.map { $0 > 0 ? [0...($0 - 1)] : [] }
        return EngineError.missingChunks(missing, cause: cause)
    }

    private func log(_ id: SessionID, _ cause: String) {
        context.logger.critical(
            "received bytes are missing or damaged",
            metadata: ["session.id": "\(id)", "cause": "\(cause)"])
    }
}
