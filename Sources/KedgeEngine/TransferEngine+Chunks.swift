package import KedgeModel

extension TransferEngine {
    /// Receives one chunk, or the rest of a partial one.
    ///
    /// The order is the promise: written, synced, row committed, then this returns. A body that
    /// breaks off leaves a durable partial, and the next upload goes on after it.
    ///
    /// - Throws: `SESSION_NOT_FOUND`, `SESSION_EXPIRED`, `SESSION_CLOSED`, `CHUNK_OUT_OF_BOUNDS`,
    ///   `RANGE_MISMATCH`, `LENGTH_MISMATCH`, `CHUNK_CONFLICT`, `OFFSET_MISMATCH`,
    ///   `CHUNK_HASH_MISMATCH`, `WRITER_REPLACED`, `STORAGE_FULL`, `BUSY`, `UNAVAILABLE`.
    package func putChunk(
        _ put: ChunkPut, to id: SessionID, owner: OwnerID, body: some ByteBody
    ) async throws -> ChunkPutOutcome {
        try await admittingWrite {
            try await registry.withSession(id, owner: owner) { live in
                let known = try await live.requireCurrent()
                let (chunk, bodyStart) = try put.validate(
                    known.record.layout, bodyByteCount: body.announcedByteCount)
                if let outcome = try Self.answer(put, known: known) { return outcome }
                return try await writing(.chunk(put.index), of: live) { writer, ledger in
                    // The chunk may have been committed by the writer that this one waited for.
                    if let outcome = try Self.answer(put, known: ledger) { return outcome }
                    let partial = try await self.usablePartial(put, chunk, bodyStart, ledger, live)
                    try await self.requireSpace(for: chunk.end - bodyStart)
                    let chunkWriter = ChunkWriter(live: live, parts: self.parts, writer: writer)
                    _ = try await chunkWriter.write(
                        put, chunk: chunk, bodyStart: bodyStart, resuming: partial, body: body)
                    try await self.awaitHash(of: live)
                    return .created(Self.receipt(put, await live.ledger))
                }
            }
        }
    }

    /// The answer that needs no body: the chunk is committed already.
    private static func answer(_ put: ChunkPut, known ledger: SessionLedger) throws
        -> ChunkPutOutcome?
    {
        guard let stored = ledger.digest(ofChunk: put.index) else { return nil }
        guard stored == put.digest else {
            throw EngineError.conflict(stored: stored, sent: put.digest)
        }
        return .alreadyReceived(receipt(put, ledger))
    }

    private static func receipt(_ put: ChunkPut, _ ledger: SessionLedger) -> ChunkReceipt {
        ChunkReceipt(
            index: put.index, sha256: put.digest, receivedBytes: ledger.receivedByteCount,
            receivedChunkCount: ledger.committed.count, totalChunks: ledger.record.layout.chunkCount
        )
    }

    /// The partial that this upload continues; one of other bytes is dropped.
    private func usablePartial(
        _ put: ChunkPut, _ chunk: ByteRange, _ bodyStart: Int64, _ ledger: SessionLedger,
        _ live: LiveSession
    ) async throws -> PartialRecord? {
        var partial = ledger.partials[put.index]
        if let declared = partial?.declaredDigest, declared != put.digest {
            try await parts.metadata.discardPartial(of: live.id, index: put.index)
            await live.discardedPartial(put.index)
            partial = nil
        }
        let expected = chunk.start + (partial?.byteCount ?? 0)
        guard bodyStart <= expected else {
            var error = EngineError(.offsetMismatch)
            error.expectedOffset = expected
            throw error
        }
        return partial
    }

    /// Holds the acknowledgement back while the whole-file hash is too far behind, so that finalize
    /// stays quick however fast chunks come.
    private func awaitHash(of live: LiveSession) async throws {
        let end = await live.ledger.committedPrefixEnd
        let floor = end - configuration.maxHashLag
        guard floor > 0, await live.prefix.offset < floor else { return }
        _ = try await live.prefix.wait(for: floor, patience: configuration.finalizePatience)
    }
}
