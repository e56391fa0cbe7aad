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
        if range == chunk, partial == nil { session.prefix.fileHashing.enter(end: chunk.end) }
        let result = await Result {
            try await pass(put, chunk: chunk, range: range, resuming: partial, body: body)
        }
        session.prefix.fileHashing.leave(end: chunk.end)
        try result.get()
    }

    private func pass(
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
        let staging = try await session.stagingArea()
        let fileHashStep =
            range == chunk && partial == nil ? FileHashStep(session, start: chunk.start) : nil
        let checkpoints = Checkpoints(
            session: session, context: context, index: put.index, chunk: chunk, resuming: partial,
            declaredDigest: Self.declaredDigest(put, resuming: partial), staging: staging)
        var pass = try ChunkPass(
            chunk: ByteRange(start: chunk.start, end: range.end), resuming: partial,
            staging: staging, context: context, fileHashStep: fileHashStep,
            checkpoints: checkpoints, writer: writer)
        if range.start > chunk.start {
            try await skip(pass.offset - range.start, of: reader, context: context)
        }
        switch await pass.run(reader) {
        case .filled:
            break
        case .bodyEnded:
            await keepPartial(pass, put, resuming: partial)
            throw EngineError(
                .lengthMismatch, "The body ended \(pass.end - pass.offset) bytes early.")
        case .interrupted(let error):
            await keepPartial(pass, put, resuming: partial)
            throw writer.interruption?.error ?? error
        }
        guard pass.end == chunk.end else {
            try await requireEnd(of: body, reader, context: context)
            return try await session.savePart(
                pass.verified, index: put.index,
                declaredDigest: Self.declaredDigest(put, resuming: partial), staging: staging)
        }
        let digest = pass.verified.digest()
        guard digest == put.digest else {
            try await session.doubtPartial(put.index, of: partial)
            throw EngineError.wrongHash(expected: put.digest, actual: digest)
        }
        try await requireEnd(of: body, reader, context: context)
        let committed = CommittedChunk(index: put.index, byteCount: chunk.byteCount, digest: digest)
        try await session.commitDurably(
            committed, staging: pass.staging, step: pass.hashStep)
        await session.followPrefix()
    }

    /// Saves the bytes that arrived before the body broke off. If that fails, the client only sends
    /// some bytes again, so the failure does not hide the error of the body.
    private func keepPartial(
        _ pass: ChunkPass, _ put: ChunkPut, resuming partial: PartialRecord?
    ) async {
        await session.keepPartial(
            pass.verified, index: put.index,
            declaredDigest: Self.declaredDigest(put, resuming: partial), staging: pass.staging)
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

extension EngineError {
    /// Returns the error for bytes that do not match their declared digest.
    static func wrongHash(expected: SHA256Digest, actual: SHA256Digest) -> EngineError {
        var error = EngineError(.chunkHashMismatch)
        error.expectedDigest = expected
        error.actualDigest = actual
        return error
    }

    /// Returns the error for a chunk that was committed with another digest.
    static func conflict(stored: SHA256Digest, sent: SHA256Digest) -> EngineError {
        var error = EngineError(.chunkConflict)
        error.expectedDigest = stored
        error.actualDigest = sent
        return error
    }
}
