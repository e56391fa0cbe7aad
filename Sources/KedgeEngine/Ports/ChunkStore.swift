package import KedgeModel

/// The result of committing one chunk.
package enum ChunkOutcome: Hashable, Sendable {
    case committed
    /// A row with the same digest existed; nothing changed.
    case alreadyCommitted
    /// A row with another digest existed; it stays.
    case conflict(stored: SHA256Digest)
}

/// Changes to a session that are written in the same transaction as a commit.
package struct SessionUpdate: Sendable {
    package var id: SessionID
    package var expiresAt: Timestamp
    /// The checkpoint of the whole-file hash; nil keeps the stored one. It never moves back.
    package var prefix: HashCheckpoint?
    /// The fencing token under which the bytes were written, in a fleet. When another writer has
    /// taken over, nothing is written and ``MetadataError/writerReplaced`` is thrown.
    package var writer: FencingToken?
    /// Tokens of further chunks in the same commit; checked in the same way.
    package var otherWriters: [FencingToken]
    /// The revision of the session that the caller knows; nil in a single process. A prefix from
    /// before an invalidation of chunks is not recorded.
    package var revision: Int64?
    /// The limits of an owner without limits of its own.
    package var quota: QuotaLimits

    package init(
        id: SessionID, expiresAt: Timestamp, prefix: HashCheckpoint? = nil,
        writer: FencingToken? = nil, otherWriters: [FencingToken] = [], revision: Int64? = nil,
        quota: QuotaLimits = .none
    ) {
        self.id = id
        self.expiresAt = expiresAt
        self.prefix = prefix
        self.writer = writer
        self.otherWriters = otherWriters
        self.revision = revision
        self.quota = quota
    }
}

/// Stores what a session has received: chunks, partials, and the hash of the file so far. Each
/// operation is one transaction, as in ``MetadataStore``.
package protocol ChunkStore: Sendable {
    /// Records chunks whose bytes are durable, and drops their partials and rivals. The first write
    /// wins.
    ///
    /// A session of unknown size reserves more when its bytes exceed what it has reserved.
    ///
    /// - Returns: One outcome per chunk, in order. With any conflict nothing is written.
    /// - Throws: `wrongState` unless the session is open, `notFound` when it is gone;
    ///   `quotaExceeded`.
    func commit(_ chunks: [CommittedChunk], touching session: SessionUpdate) async throws
        -> [ChunkOutcome]

    /// Records the durable first bytes of a chunk and replaces the earlier record. A partial and a
    /// rival do not replace each other. A committed chunk does not change. A partial reserves as
    /// ``commit(_:touching:)`` does, and a rival does not.
    ///
    /// - Throws: ``MetadataError/writerReplaced`` when another writer has the chunk, or has saved
    ///   this partial since the touch's writer got the chunk; `quotaExceeded`.
    func savePartial(_ partial: PartialRecord, touching session: SessionUpdate) async throws

    /// Deletes the record of a chunk's partial or rival.
    ///
    /// - Throws: ``MetadataError/writerReplaced`` as ``savePartial(_:touching:)`` does.
    func discardPartial(
        of id: SessionID, index: Int, isRival: Bool, by writer: FencingToken?
    ) async throws

    /// Invalidates chunks whose bytes are missing or damaged, so that the client sends them again.
    /// Also drops every partial and rival, the prefix and the finalize job.
    func invalidateChunks(_ indexes: [Int], of id: SessionID) async throws

    /// Invalidates chunks of an open session that were found damaged when they were read, as
    /// ``invalidateChunks(_:of:)`` does.
    ///
    /// The prefix is dropped because its hash covers bytes as they were received, not as they are
    /// stored. Without it, all other chunks are read back and compared, too.
    ///
    /// - Parameter revision: The revision that the caller knew when it read the chunks, as
    ///   ``SessionUpdate/revision``.
    /// - Throws: ``MetadataError/writerReplaced`` when chunks were invalidated since the revision:
    ///   the rows may then name other bytes. `wrongState` unless the session is open.
    func invalidateDamagedChunks(
        _ indexes: [Int], of id: SessionID, knowing revision: Int64?
    ) async throws

    /// Invalidates all chunks, for a writer that found saved bytes gone. Also drops the state that
    /// the byte store recorded for the area.
    ///
    /// - Throws: ``MetadataError/writerReplaced`` when the writer's lease was taken over, chunks
    ///   were invalidated since its revision, or a finalize job exists. `wrongState` unless the
    ///   session is open.
    func invalidateChunks(touching session: SessionUpdate) async throws

    /// Records the checkpoint of the whole-file hash if it is past the recorded one.
    ///
    /// - Parameter revision: The revision that the caller knows, as ``SessionUpdate/revision``.
    func savePrefix(
        _ prefix: HashCheckpoint, of id: SessionID, knowing revision: Int64?
    ) async throws
}

extension ChunkStore {
    /// Deletes the record of a chunk's partial, but not of its rival.
    package func discardPartial(
        of id: SessionID, index: Int, by writer: FencingToken?
    ) async throws {
        try await discardPartial(of: id, index: index, isRival: false, by: writer)
    }
}
