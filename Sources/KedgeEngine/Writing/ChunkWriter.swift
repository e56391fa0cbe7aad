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
    /// - Throws: `CHUNK_HASH_MISMATCH` (the partial is dropped), `LENGTH_MISMATCH`,
    ///   `STORAGE_FULL` and interruptions (what was written stays as a partial).
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
            declaredDigest: put.digest, staging: staging)
        var pass = try ChunkPass(
            chunk: chunk, resuming: partial, staging: staging, parts: parts, turn: turn,
            checkpoints: checkpoints)
        let reader = try await body.makeReader()
        try await skip(pass.offset - bodyStart, of: reader, parts: parts)
        switch await pass.run(reader) {
        case .filled:
            break
        case .bodyEnded:
            await keepPartial(pass, put: put)
            throw EngineError(
                .lengthMismatch, "The body ended \(chunk.end - pass.offset) bytes early.")
        case .interrupted(let error):
            await keepPartial(pass, put: put)
            throw writer.interruption?.error ?? error
        }
        let digest = pass.verified.digest()
        guard digest == put.digest else {
            try await live.discardPartial(put.index)
            var error = EngineError(.chunkHashMismatch)
            error.expectedDigest = put.digest
            error.actualDigest = digest
            throw error
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
    private func keepPartial(_ pass: ChunkPass, put: ChunkPut) async {
        await live.keepPartial(
            pass.verified, index: put.index, declaredDigest: put.digest, staging: pass.staging)
    }
}

extension LiveSession {
    /// The same for the chunk of a pass, whose step in the file's hash then counts.
    func commitDurably(_ chunk: CommittedChunk, of pass: ChunkPass) async throws {
        guard let before = pass.fileHashBefore, let after = pass.fileHash else {
            return try await commitDurably([chunk], staging: pass.staging)
        }
        // Now, so that the next chunk need not wait for this one's sync.
        prefix.turns.announce(after, from: before)
        do {
            try await commitDurably([chunk], staging: pass.staging)
        } catch {
            prefix.turns.withdraw(stepAt: before.byteCount)
            throw error
        }
        await prefix.accept(stepAt: before.byteCount)
    }

    /// Makes the chunks' bytes durable, then their rows: in that order, and both before anybody hears
    /// of it.
    func commitDurably(_ chunks: [CommittedChunk], staging: any StagingArea) async throws {
        let chunks = try await save(chunks, staging: staging)
        let touch = await touch(writing: chunks.first?.index)
        let outcomes: [ChunkOutcome]
        do {
            outcomes = try await parts.metadata.commit(chunks, touching: touch)
        } catch let error as MetadataError {
            if case .wrongState = error { becomeStale() }
            await disown(after: error)
            throw error
        }
        for (chunk, outcome) in zip(chunks, outcomes) {
            if case .conflict(let stored) = outcome {
                throw EngineError.conflict(stored: stored, sent: chunk.digest)
            }
        }
        recordCommit(chunks, touch: touch)
    }

    /// Makes the bytes of whole chunks durable.
    ///
    /// - Returns: The chunks with where the byte store put them.
    private func save(
        _ chunks: [CommittedChunk], staging: any StagingArea
    ) async throws -> [CommittedChunk] {
        var saved: [CommittedChunk] = []
        for var chunk in chunks {
            let place = place(of: chunk.index, byteCount: chunk.byteCount)
            let earlier = ledger.partials[chunk.index]?.location
            do {
                chunk.location = try await staging.saveChunk(
                    place, digest: chunk.digest, after: earlier)
            } catch ByteStoreError.notFound where earlier != nil {
                // Perhaps only the first bytes of this chunk. If it is more, the next attempt shows it.
                throw try await takeBackPartial(of: chunk.index)
            } catch ByteStoreError.notFound {
                throw try await takeBackEverything(writing: chunk.index)
            } catch {
                await closeStaging(afterFailureOf: staging)
                throw error
            }
            saved.append(chunk)
        }
        return saved
    }

    /// The session ended while its bytes were on their way into a store that nobody looks through: the sweep
    /// may have been there before them.
    private func disown(after error: MetadataError) async {
        switch error {
        case .wrongState, .notFound:
            guard parts.bytes.assembles else { return }
            // A failure here leaves them to `kedge fsck`; the first error is the one to report.
            try? await parts.metadata.leaveToSweep(ledger.record.stagingKey)
        default: return
        }
    }

    /// Where the first bytes of a chunk lie.
    private func place(of index: Int, byteCount: Int64) -> ChunkPlace {
        let layout = ledger.record.layout
        return ChunkPlace(
            index: index, start: layout.range(ofChunk: index)?.start ?? 0, byteCount: byteCount,
            isWholeFile: layout.fileSize == byteCount)
    }

    /// The first bytes of a chunk are gone, though a row promises them. Takes the promise back.
    private func takeBackPartial(of index: Int) async throws -> EngineError {
        try await discardPartial(index)
        return EngineError(
            .unavailable, cause: "the first bytes of chunk \(index) of session \(id) are gone")
    }

    /// What was saved of the file before is gone, though rows promise it. Takes the promise back.
    ///
    /// - Returns: The error for the client, who asks what is there and sends it again.
    private func takeBackEverything(writing index: Int) async throws -> EngineError {
        becomeStale()
        try await parts.metadata.takeBackChunks(touching: await touch(writing: index))
        return EngineError(.unavailable, cause: "the saved chunks of session \(id) are gone")
    }

    /// Saves the first bytes of a chunk as far as that works.
    ///
    /// A full or failing disk is not an error here: the bytes recorded before are still good.
    func keepPartial(
        _ verified: SHA256Hasher, index: Int, declaredDigest: SHA256Digest?,
        staging: any StagingArea
    ) async {
        try? await savePartial(
            verified, index: index, declaredDigest: declaredDigest, staging: staging)
    }

    /// Syncs and records the first bytes of a chunk, those that the hash has seen, when they are more
    /// than what is recorded.
    func savePartial(
        _ verified: SHA256Hasher, index: Int, declaredDigest: SHA256Digest?,
        staging: any StagingArea
    ) async throws {
        let known = ledger.partials[index]
        guard verified.byteCount > known?.byteCount ?? 0 else { return }
        // What comes into a shared store for a session that is over stays there until somebody looks.
        guard !parts.bytes.assembles || ledger.record.state == .open else { return }
        var partial = PartialRecord(
            index: index, byteCount: verified.byteCount, hashState: verified.savedState,
            declaredDigest: declaredDigest)
        do {
            partial.location = try await staging.savePartial(
                place(of: index, byteCount: verified.byteCount), after: known?.location)
        } catch {
            await closeStaging(afterFailureOf: staging)
            throw error
        }
        let touch = await touch(writing: index)
        do {
            try await parts.metadata.savePartial(partial, touching: touch)
        } catch let error as MetadataError {
            await disown(after: error)
            throw error
        }
        savedPartial(partial, touch: touch)
    }
}

extension EngineError {
    /// The error of a chunk that was committed with another digest.
    static func conflict(stored: SHA256Digest, sent: SHA256Digest) -> EngineError {
        var error = EngineError(.chunkConflict)
        error.expectedDigest = stored
        error.actualDigest = sent
        return error
    }
}
