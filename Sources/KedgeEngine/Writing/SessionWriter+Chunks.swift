internal import KedgeModel

// Native uploads of chunks.
extension SessionWriter {
    /// Receives a chunk or a part of one: in the chunk's place, or beside a partial of other bytes.
    ///
    /// - Throws: The errors of ``TransferEngine/putChunk(_:to:owner:body:)``.
    func put(
        _ put: ChunkPut, to session: LiveSession, in place: WritePlace, body: some ByteBody
    ) async throws -> ChunkPutOutcome {
        let before = try await session.view(ofChunk: put.index)
        let (chunk, range) = try put.validate(
            before.layout, bodyByteCount: body.announcedByteCount)
        try await session.requirePermitted(range.end)
        if let outcome = try await answer(put, chunk, known: before, session) { return outcome }
        return try await writing(.chunk(put.index), of: session, in: place) { writer in
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
                    if !isKept { self.places.hold(place) }
                    let rivalWriter = RivalWriter(
                        session: session, context: self.context, writer: writer, put: put,
                        chunk: chunk, end: range.end, isKept: isKept)
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
}
