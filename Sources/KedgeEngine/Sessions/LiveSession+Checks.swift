internal import KedgeModel

// Preconditions and status of a session.
extension LiveSession {
    /// Checks that the session's bytes come from clients.
    ///
    /// - Throws: `UPLOAD_IS_FINAL` when they come from partial uploads.
    func requireOwnBytes() throws {
        guard ledger.record.sourceIDs == nil else { throw EngineError(.uploadIsFinal) }
    }

    /// Checks that bytes up to this offset do not exceed the maximum size of the file.
    ///
    /// - Throws: `FILE_TOO_LARGE`.
    func requirePermitted(_ end: Int64) throws {
        guard ledger.record.fileSize == nil else { return }
        let limit = context.maxFileSize(of: ledger.record)
        guard end <= limit else { throw EngineError.tooLarge(maxBytes: limit) }
    }

    /// Checks that the session accepts bytes now.
    ///
    /// - Throws: `SESSION_EXPIRED`, `SESSION_CLOSED`, `UNAVAILABLE` while the session is reloaded.
    func requireOpen() throws {
        try requireCurrent()
        guard !isRetired else {
            throw EngineError(.unavailable, "The session is being reloaded; try again.")
        }
        guard ledger.record.state == .open else { throw EngineError.closed(ledger.record.state) }
    }

    /// Returns the wire form of the session's status.
    ///
    /// - Throws: `SESSION_EXPIRED`.
    func currentStatus(withDigests: Bool = false) throws -> SessionStatus {
        try requireCurrent()
        return withDigests ? ledger.statusWithDigests : ledger.status
    }

    /// Returns the upload as clients see it that may resume it.
    ///
    /// - Throws: `SESSION_EXPIRED`, `SESSION_CLOSED` for a canceled or failed session.
    func uploadView() throws -> UploadView {
        try requireCurrent()
        switch ledger.record.state {
        case .open, .finalizing, .completed: return UploadView(ledger)
        default: throw EngineError.closed(ledger.record.state)
        }
    }

    /// Returns a snapshot of one chunk. It is small: keeping a copy of the ledger while bytes
    /// arrive would make each commit copy all of it.
    func view(ofChunk index: Int) throws -> ChunkView {
        try requireCurrent()
        return ChunkView(
            layout: ledger.record.layout, digest: ledger.digest(ofChunk: index),
            partial: ledger.partials[index], rival: ledger.rivals[index])
    }

    /// Returns the receipt for a body that ended before its chunk.
    func partialReceipt(for put: ChunkPut, chunk: ByteRange) throws -> PartialChunk {
        let known = BodyPlacement(of: put, try view(ofChunk: put.index), chunk: chunk).partial
        guard let known else {
            throw EngineError(.internalError, cause: "a partial chunk was not saved")
        }
        return PartialChunk(index: put.index, receivedBytes: known.byteCount)
    }

    /// Returns the receipt for a committed chunk.
    func receipt(for put: ChunkPut) -> ChunkReceipt {
        ChunkReceipt(
            index: put.index, sha256: put.digest, receivedBytes: ledger.receivedByteCount,
            receivedChunkCount: ledger.committed.count, totalChunks: ledger.record.layout.chunkCount
        )
    }
}
