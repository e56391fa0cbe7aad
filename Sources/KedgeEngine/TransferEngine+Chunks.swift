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
        // With a digest of the body alone, the client must send the whole body again.
        let outcome = try await admittingWrite(
            of: body, to: id, owner: owner, isEvictable: !put.isBodyDigest
        ) { place in
            try await registry.withSession(id, owner: owner) { session in
                try await session.requireOwnBytes()
                return try await write(put, to: session, in: place, body: body)
            }
        }
        if case .created = outcome { try await awaitHash(of: id, owner: owner) }
        return outcome
    }

    private func write(
        _ put: ChunkPut, to session: LiveSession, in place: WritePlace, body: some ByteBody
    ) async throws -> ChunkPutOutcome {
        let before = try await session.view(ofChunk: put.index)
        let (chunk, range) = try put.validate(
            before.layout, bodyByteCount: body.announcedByteCount)
        if let outcome = try await answer(put, chunk, known: before, session) { return outcome }
        return try await sessionWriter.writing(.chunk(put.index), of: session, in: place) {
            writer in
            // The chunk may have been committed by the writer that this one waited for.
            let view = try await session.view(ofChunk: put.index)
            if let outcome = try await self.answer(put, chunk, known: view, session) {
                return outcome
            }
            let placement = BodyPlacement(of: put, view, chunk: chunk)
            try placement.require(range, chunk: chunk, awaitsContinue: body.awaitsContinue)
            let room = range.byteCount + (placement.isBeside ? chunk.byteCount : 0)
            return try await self.context.space.reserving(room, of: self.context.bytes) {
                switch placement {
                case .inPlace(let partial):
                    let chunkWriter = ChunkWriter(
                        session: session, context: self.context, writer: writer)
                    try await chunkWriter.write(
                        put, chunk: chunk, range: range, resuming: partial, body: body)
                case .beside(let rival, let isKept):
                    if !isKept { self.hold(place) }
                    let rivalWriter = RivalWriter(
                        session: session, context: self.context, writer: writer, put: put,
                        chunk: chunk,
                        end: range.end, isKept: isKept)
                    try await rivalWriter.write(
                        bodyStart: range.start, resuming: rival, body: body)
                }
                guard range.end < chunk.end else {
                    return .created(await session.receipt(for: put))
                }
                return .partial(try await session.partialReceipt(for: put, chunk: chunk))
            }
        }
    }

    /// Returns the outcome if the body is not needed: the chunk is committed already, or the bytes
    /// of the body are durable. Idempotent: a client that missed the earlier response gets a
    /// success.
    ///
    /// - Throws: `CHUNK_CONFLICT` when the chunk was committed with another digest.
    private func answer(
        _ put: ChunkPut, _ chunk: ByteRange, known view: ChunkView, _ session: LiveSession
    ) async throws -> ChunkPutOutcome? {
        guard let stored = view.digest else {
            let known = BodyPlacement(of: put, view, chunk: chunk).partial
            guard let end = put.contentRange.range?.end, end < chunk.end,
                let known, known.byteCount >= end - chunk.start
            else { return nil }
            return .partial(PartialChunk(index: put.index, receivedBytes: known.byteCount))
        }
        guard stored == put.digest else {
            throw EngineError.conflict(stored: stored, sent: put.digest)
        }
        return .alreadyReceived(await session.receipt(for: put))
    }

    /// Delays the acknowledgement while the whole-file hash lags too far behind, which bounds the
    /// time of finalize. Holds no writer slot, so only this client waits.
    private func awaitHash(of id: SessionID, owner: OwnerID) async throws {
        try await translating {
            try await registry.withSession(id, owner: owner) { session in
                let floor = await session.ledger.committedPrefixEnd - configuration.maxHashLag
                guard floor > 0, await session.prefix.offset < floor else { return }
                _ = try await session.prefix.wait(
                    for: floor, timeout: configuration.finalizeTimeout)
            }
        }
    }
}
