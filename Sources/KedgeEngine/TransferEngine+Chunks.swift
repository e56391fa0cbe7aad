package import KedgeModel

extension TransferEngine {
    /// Receives one chunk, or a part of one.
    ///
    /// Bytes are written, then synced, then the row is committed, and only then this returns. A
    /// body that breaks off, or ends before the chunk does, leaves a durable partial. The next
    /// upload of the chunk continues after it.
    ///
    /// - Throws: `SESSION_NOT_FOUND`, `SESSION_EXPIRED`, `SESSION_CLOSED`, `CHUNK_OUT_OF_BOUNDS`,
    ///   `CHUNK_HASH_REQUIRED`, `RANGE_MISMATCH`, `LENGTH_MISMATCH`, `CHUNK_CONFLICT`,
    ///   `OFFSET_MISMATCH`, `CHUNK_HASH_MISMATCH`, `WRITER_REPLACED`, `STORAGE_FULL`, `BUSY`,
    ///   `UNAVAILABLE`, `UPLOAD_IS_FINAL`.
    package func putChunk(
        _ put: ChunkPut, to id: SessionID, owner: OwnerID, body: some ByteBody
    ) async throws -> ChunkPutOutcome {
        try await uploads.putChunk(put, to: id, owner: owner, body: body)
    }
}
