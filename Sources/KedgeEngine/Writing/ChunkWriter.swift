internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// Carries one chunk from a body to its committed row.
struct ChunkWriter {
    let live: LiveSession
    let parts: EngineParts
    let writer: ActiveWriter

    /// Writes the rest of a chunk, checks its digest, syncs, commits.
    ///
    /// - Throws: `CHUNK_HASH_MISMATCH` (the partial is dropped, apart from bytes that an append was told are
    ///   durable), `LENGTH_MISMATCH`, `STORAGE_FULL` and interruptions (what was written stays as a
    ///   partial).
    func write(
        _ put: ChunkPut, chunk: ByteRange, bodyStart: Int64, resuming partial: PartialRecord?,
        body: some ByteBody
    ) async throws -> CommittedChunk {
        // The rest of a chunk takes no turn, so nobody should wait for it.
        if partial == nil { live.prefix.turns.enter(end: chunk.end) }
        let result = await Result {
            try await pass(put, chunk: chunk, bodyStart: bodyStart, resuming: partial, body: body)
        }
        live.prefix.turns.leave(end: chunk.end)
        return try result.get()
    }

    private func pass(
        _ put: ChunkPut, chunk: ByteRange, bodyStart: Int64, resuming partial: PartialRecord?,
        body: some ByteBody
    ) async throws -> CommittedChunk {
        let staging = try await live.stagingArea()
        let turn = partial == nil ? HashTurn(live, start: chunk.start) : nil
        let checkpoints = Checkpoints(
            live: live, parts: parts, index: put.index, chunk: chunk, resuming: partial,
            declaredDigest: Self.declaredDigest(put, resuming: partial), staging: staging)
        var pass = try ChunkPass(
            chunk: chunk, resuming: partial, staging: staging, parts: parts, turn: turn,
            checkpoints: checkpoints)
        let reader = try await body.makeReader()
        if let partial, bodyStart == chunk.start {
            try await passOver(partial, chunk, put, reader)
        } else {
            try await skip(pass.offset - bodyStart, of: reader, parts: parts)
        }
        switch await pass.run(reader) {
        case .filled:
            break
        case .bodyEnded:
            await keepPartial(pass, put, resuming: partial)
            throw EngineError(
                .lengthMismatch, "The body ended \(chunk.end - pass.offset) bytes early.")
        case .interrupted(let error):
            await keepPartial(pass, put, resuming: partial)
            throw writer.interruption?.error ?? error
        }
        let digest = pass.verified.digest()
        guard digest == put.digest else {
            try await live.forgetPartial(put.index, butFor: partial)
            throw EngineError.wrongHash(expected: put.digest, actual: digest)
        }
        try await requireEnd(of: body, reader)
        let committed = CommittedChunk(index: put.index, byteCount: chunk.byteCount, digest: digest)
        try await live.commitDurably(committed, of: pass)
        await live.followPrefix()
        return committed
    }

    /// A body that announced exactly these bytes has no more; only an open-ended one may go on. When it
    /// breaks off here instead, the chunk is whole all the same, and counts.
    private func requireEnd(of body: some ByteBody, _ reader: any ByteReader) async throws {
        guard body.announcedByteCount == nil else { return }
        let isOver: Bool
        do {
            isOver = try await isAtEnd(reader, parts: parts)
        } catch {
            return
        }
        guard isOver else {
            throw EngineError(.lengthMismatch, "The body goes on after the chunk's end.")
        }
    }

    /// Saves what arrived before the body broke off. Losing it costs the client some bytes again, so
    /// a failure here does not hide the one that interrupted the body.
    private func keepPartial(
        _ pass: ChunkPass, _ put: ChunkPut, resuming partial: PartialRecord?
    ) async {
        await live.keepPartial(
            pass.verified, index: put.index,
            declaredDigest: Self.declaredDigest(put, resuming: partial), staging: pass.staging)
    }

    /// What a partial says that its chunk will be. Bytes that came by append, whose client was told that they
    /// are durable, are not tied to what another client declares: it could drop them.
    private static func declaredDigest(
        _ put: ChunkPut, resuming partial: PartialRecord?
    ) -> SHA256Digest? {
        guard let partial else { return put.digest }
        return partial.declaredDigest
    }

    /// Reads the first bytes of a body that brings the whole chunk again. They are the same as those that are
    /// there, as a rule.
    ///
    /// - Throws: `OFFSET_MISMATCH` when they are not, and the body is what it says: then what is there is of
    ///   another file, or damaged, and is dropped. `CHUNK_HASH_MISMATCH` when the body is not.
    private func passOver(
        _ partial: PartialRecord, _ chunk: ByteRange, _ put: ChunkPut, _ reader: any ByteReader
    ) async throws {
        var (hasher, hasMore) = try await readAndHash(
            SHA256Hasher(), upTo: partial.byteCount, of: reader, parts: parts)
        guard hasher.byteCount == partial.byteCount,
            hasher.digest() != SHA256Hasher(savedState: partial.hashState)?.digest()
        else { return }
        if hasMore {
            (hasher, hasMore) = try await readAndHash(
                hasher, upTo: chunk.byteCount, of: reader, parts: parts)
        }
        let digest = hasher.digest()
        guard digest == put.digest else {
            throw EngineError.wrongHash(expected: put.digest, actual: digest)
        }
        try await live.discardPartial(put.index)
        var error = EngineError(.offsetMismatch)
        error.expectedOffset = chunk.start
        throw error
    }
}

extension EngineError {
    /// The error of bytes that are not what was said of them.
    static func wrongHash(expected: SHA256Digest, actual: SHA256Digest) -> EngineError {
        var error = EngineError(.chunkHashMismatch)
        error.expectedDigest = expected
        error.actualDigest = actual
        return error
    }

    /// The error of a chunk that was committed with another digest.
    static func conflict(stored: SHA256Digest, sent: SHA256Digest) -> EngineError {
        var error = EngineError(.chunkConflict)
        error.expectedDigest = stored
        error.actualDigest = sent
        return error
    }
}
