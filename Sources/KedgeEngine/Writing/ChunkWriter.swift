internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// Writes one chunk from a body and commits it.
struct ChunkWriter {
    let session: LiveSession
    let context: EngineContext
    let writer: ActiveWriter

    /// Writes the rest of a chunk, checks its digest, syncs and commits. Bytes of a body that ends
    /// before the chunk are synced and recorded as its partial.
    ///
    /// A body that starts with the chunk and differs from the partial replaces it, by a
    /// ``RivalWriter``.
    ///
    /// - Throws: `CHUNK_HASH_MISMATCH` (the partial is discarded or in doubt), `LENGTH_MISMATCH`,
    ///   `STORAGE_FULL` and interruptions (written bytes stay as a partial).
    func write(
        _ put: ChunkPut, chunk: ByteRange, range: ByteRange, resuming partial: PartialRecord?,
        body: some ByteBody
    ) async throws {
        // A part of a chunk has no step in the file's hash, so no other chunk should wait for it.
        if range == chunk, partial == nil {
            session.prefix.fileHashing.enter(chunk.start, end: chunk.end)
        }
        let result = await Result {
            try await writeRest(put, chunk: chunk, range: range, resuming: partial, body: body)
        }
        session.prefix.fileHashing.leave(at: chunk.start)
        try result.get()
    }

    private func writeRest(
        _ put: ChunkPut, chunk: ByteRange, range: ByteRange, resuming partial: PartialRecord?,
        body: some ByteBody
    ) async throws {
        let reader = try await body.makeReader()
        if let partial, range.start == chunk.start {
            // Usually a client that did not know of the partial sends its bytes again.
            let isKept = try await session.view(ofChunk: put.index).rival == nil
            let beside = RivalWriter(
                session: session, context: context, writer: writer, put: put, chunk: chunk,
                end: range.end,
                isKept: isKept)
            if try await beside.write(comparing: partial, reader: reader, body: body) { return }
        }
        var write = try ChunkWrite(
            put.index, of: session, writer: writer, chunk: chunk, end: range.end,
            resuming: partial, declaredDigest: Self.declaredDigest(put, resuming: partial),
            staging: try await session.stagingArea(),
            hashesFile: range == chunk && partial == nil)
        if range.start > chunk.start {
            try await reader.skip(write.offset - range.start, through: context.buffers)
        }
        try await write.receiveAll(reader)
        guard range.end == chunk.end else {
            try await reader.requireEnd(of: body, through: context.buffers)
            return try await write.commitPartial()
        }
        guard write.digest == put.digest else {
            try await session.doubtPartial(put.index, of: partial)
            throw EngineError.wrongHash(expected: put.digest, actual: write.digest)
        }
        try await reader.requireEnd(of: body, through: context.buffers)
        try await write.commit()
    }

    /// Returns the digest that a partial declares for its chunk. Acknowledged bytes of an append
    /// keep none: a digest that another client declares could discard them.
    private static func declaredDigest(
        _ put: ChunkPut, resuming partial: PartialRecord?
    ) -> SHA256Digest? {
        guard let partial else { return put.digest }
        return partial.declaredDigest
    }
}
