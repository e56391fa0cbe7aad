internal import KedgeModel

// What may be done to a session now, and what is told of it.
extension LiveSession {
    /// Checks that the session's bytes come from clients.
    ///
    /// - Throws: `UPLOAD_IS_FINAL` when they are those of other sessions.
    func requireOwnBytes() throws {
        guard ledger.record.parts == nil else { throw EngineError(.uploadIsFinal) }
    }

    /// Checks that the session takes bytes now.
    ///
    /// - Throws: `SESSION_EXPIRED`, `SESSION_CLOSED`.
    func requireOpen() throws {
        try requireCurrent()
        guard !isRetired else { throw EngineError(.unavailable, "The session is changing hands.") }
        guard ledger.record.state == .open else { throw EngineError.closed(ledger.record.state) }
    }

    /// The wire form of a session whose time is not over.
    func currentStatus(withDigests: Bool = false) throws -> SessionStatus {
        try requireCurrent()
        return withDigests ? ledger.statusWithDigests : ledger.status
    }

    /// What is known of one chunk. A small value: holding on to the ledger while bytes move would
    /// make each commit copy the whole of it.
    func view(ofChunk index: Int) throws -> ChunkView {
        try requireCurrent()
        return ChunkView(
            layout: ledger.record.layout, digest: ledger.digest(ofChunk: index),
            partial: ledger.partials[index], rival: ledger.rivals[index])
    }

    /// The answer to a body that ended before its chunk does.
    func partialReceipt(for put: ChunkPut, chunk: ByteRange) throws -> PartialChunk {
        let known = Resumption(of: put, try view(ofChunk: put.index), chunk: chunk).partial
        guard let known else {
            throw EngineError(.internalError, cause: "a part of a chunk was not saved")
        }
        return PartialChunk(index: put.index, receivedBytes: known.byteCount)
    }

    /// The answer to a chunk that is committed.
    func receipt(for put: ChunkPut) -> ChunkReceipt {
        ChunkReceipt(
            index: put.index, sha256: put.digest, receivedBytes: ledger.receivedByteCount,
            receivedChunkCount: ledger.committed.count, totalChunks: ledger.record.layout.chunkCount
        )
    }
}
