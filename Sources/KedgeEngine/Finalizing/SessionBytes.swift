internal import KedgeModel
internal import Logging

/// The staged bytes of sessions as a whole: their description for the store, their assembly, and
/// the invalidation of those that are lost or damaged.
struct SessionBytes: Sendable {
    let context: EngineContext
    let registry: SessionRegistry

    /// Makes the bytes of a complete session readable from end to end.
    func assemble(_ session: LiveSession) async throws {
        do {
            try await context.bytes.assemble(await stagedFile(session))
        } catch ByteStoreError.notFound {
            throw try await invalidate(
                session, await session.ledger.record, cause: "saved chunks are missing")
        }
    }

    /// Returns the description of the session's bytes for the store.
    func stagedFile(_ session: LiveSession) async -> StagedFile {
        let ledger = await session.ledger
        return StagedFile(
            key: ledger.record.stagingKey, byteCount: ledger.record.fileSize ?? 0,
            // Other stores find the bytes without the list, which can be long.
            chunks: context.traits.needsChunkList ? ledger.chunks : [])
    }

    /// Invalidates a chunk whose stored bytes do not match its digest; all chunks when the store
    /// cannot replace one alone.
    func invalidate(_ session: LiveSession, _ damage: DamagedChunk) async throws -> EngineError {
        try await invalidate(
            session, await session.ledger.record,
            only: context.traits.replacesSingleChunks ? damage.index : nil,
            cause: "the stored bytes of chunk \(damage.index) do not match its digest")
    }

    /// Invalidates acknowledged chunks whose bytes are missing or damaged. The session is open
    /// again, and the client sends them again.
    ///
    /// - Parameter index: The damaged chunk; all chunks when nil.
    /// - Returns: The error for the client, with the missing chunks.
    func invalidate(
        _ session: LiveSession, _ record: SessionRecord, only index: Int? = nil, cause: String
    ) async throws -> EngineError {
        context.logger.critical(
            "received bytes are missing or damaged",
            metadata: ["session.id": "\(record.id)", "cause": "\(cause)"])
        if record.state == .finalizing { try await context.metadata.reopen(record.id) }
        let indexes = await session.ledger.committed.indexes
        try await context.metadata.invalidateChunks(index.map { [$0] } ?? indexes, of: record.id)
        await registry.drop(record.id)
        let missing =
            index.map { [$0...$0] }
            ?? record.layout.chunkCount.map { $0 > 0 ? [0...($0 - 1)] : [] }
        return EngineError.missingChunks(missing, cause: cause)
    }
}
