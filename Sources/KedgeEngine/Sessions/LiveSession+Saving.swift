internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

// Bytes first, then their rows: what makes chunks and partials durable.
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
    ///
    /// - Parameter isWhole: The area has every byte of the chunks; nothing of their partials belongs to them.
    func commitDurably(
        _ chunks: [CommittedChunk], staging: any StagingArea, isWhole: Bool = false
    ) async throws {
        try requireFitting(chunks)
        let chunks = try await save(chunks, staging: staging, isWhole: isWhole)
        let touch = await touch(writing: chunks.map(\.index))
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
        let rivals = chunks.map(\.index).filter { ledger.rivals[$0] != nil }
        recordCommit(chunks, touch: touch)
        // A failure leaves a file that the next start removes.
        for index in rivals { try? await staging.removeRival(ofChunk: index) }
    }

    /// The size may have been declared while a chunk came.
    private func requireFitting(_ chunks: [CommittedChunk]) throws {
        let layout = ledger.record.layout
        for chunk in chunks
        where layout.range(ofChunk: chunk.index)?.byteCount != chunk.byteCount {
            throw EngineError(.chunkOutOfBounds, "The size of the file was declared meanwhile.")
        }
    }

    /// Makes the bytes of whole chunks durable.
    ///
    /// - Returns: The chunks with where the byte store put them.
    private func save(
        _ chunks: [CommittedChunk], staging: any StagingArea, isWhole: Bool
    ) async throws -> [CommittedChunk] {
        var saved: [CommittedChunk] = []
        for var chunk in chunks {
            let place = place(of: chunk.index, byteCount: chunk.byteCount)
            let earlier = isWhole ? nil : ledger.partials[chunk.index]?.location
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
        try await parts.metadata.takeBackChunks(touching: await touch(writing: [index]))
        return EngineError(.unavailable, cause: "the saved chunks of session \(id) are gone")
    }

    /// Saves the first bytes of a chunk as far as that works.
    ///
    /// A full or failing disk is not an error here: the bytes recorded before are still good.
    func keepPartial(
        _ verified: SHA256Hasher, index: Int, declaredDigest: SHA256Digest?,
        staging: any StagingArea, isRival: Bool = false
    ) async {
        try? await savePartial(
            verified, index: index, declaredDigest: declaredDigest, staging: staging,
            isRival: isRival)
    }

    /// Makes the first bytes of a chunk durable of which a body brought no more.
    ///
    /// - Throws: What keeps them from counting; `RANGE_MISMATCH` when only a whole chunk can count.
    func savePart(
        _ verified: SHA256Hasher, index: Int, declaredDigest: SHA256Digest?,
        staging: any StagingArea, isRival: Bool = false
    ) async throws {
        try requireOpen()
        try await savePartial(
            verified, index: index, declaredDigest: declaredDigest, staging: staging,
            isRival: isRival)
        let saved = isRival ? ledger.rivals[index] : ledger.partials[index]
        guard (saved?.byteCount ?? 0) >= verified.byteCount else { throw EngineError.onlyWhole }
    }

    /// Syncs and records the first bytes of a chunk, those that the hash has seen, when they are more
    /// than what is recorded.
    ///
    /// - Parameter isRival: Whether they are those of a rival, which lie in an area of their own.
    func savePartial(
        _ verified: SHA256Hasher, index: Int, declaredDigest: SHA256Digest?,
        staging: any StagingArea, isRival: Bool = false
    ) async throws {
        let known = isRival ? ledger.rivals[index] : ledger.partials[index]
        guard verified.byteCount > known?.byteCount ?? 0 else { return }
        guard !isRival || known != nil || hasRoomForRival else { return }
        // What comes into a shared store for a session that is over stays there until somebody looks.
        guard !parts.bytes.assembles || ledger.record.state == .open else { return }
        var partial = PartialRecord(
            index: index, byteCount: verified.byteCount, hashState: verified.savedState,
            declaredDigest: declaredDigest, isRival: isRival,
            isInDoubt: known?.isInDoubt ?? false)
        do {
            partial.location = try await staging.savePartial(
                place(of: index, byteCount: verified.byteCount), after: known?.location)
        } catch {
            await closeStaging(afterFailureOf: staging)
            throw error
        }
        let touch = await touch(writing: [index])
        do {
            try await parts.metadata.savePartial(partial, touching: touch)
        } catch let error as MetadataError {
            await disown(after: error)
            throw error
        }
        savedPartial(partial, touch: touch)
    }
}

extension LiveSession {
    /// Most rivals of one session that are kept when their bodies break off. Each takes a file and
    /// up to a chunk of space, and no honest client needs more than one for each of its
    /// connections.
    static let maxRivalCount = 64

    private var hasRoomForRival: Bool { ledger.rivals.count < Self.maxRivalCount }

    /// Takes note that the first bytes of a chunk and their rest do not have the digest that was named for them.
    ///
    /// What was acknowledged before stays, in doubt: the rest may be what is wrong, damaged on its way. Native clients
    /// are not offered it again, and what they send from the chunk's first byte lies beside it until it is whole;
    /// appends go on after it. What only this request brought is discarded.
    func doubtPartial(_ index: Int, of earlier: PartialRecord?) async throws {
        guard var earlier else { return try await discardPartial(index) }
        earlier.isInDoubt = true
        let touch = await touch(writing: [index])
        try await parts.metadata.savePartial(earlier, touching: touch)
        savedPartial(earlier, touch: touch)
    }

    /// Makes the partial of a chunk its rival, so that other bytes can be written to the chunk's place. It is as
    /// durable before and after, and goes on for a body that names its digest.
    ///
    /// - Returns: False when it stays: it came by append, the chunk has a rival already, or the
    ///   session has as many as it may.
    func setAside(_ partial: PartialRecord) async throws -> Bool {
        guard partial.declaredDigest != nil, ledger.rivals[partial.index] == nil, hasRoomForRival
        else { return false }
        let area = try await stagingArea()
        var rival = partial
        rival.isRival = true
        rival.location = try await area.keepAsRival(
            place(of: partial.index, byteCount: partial.byteCount), location: partial.location)
        let touch = await touch(writing: [partial.index])
        // First where it is now, then not where it was: a stop between leaves it in both places.
        try await parts.metadata.savePartial(rival, touching: touch)
        savedPartial(rival, touch: touch)
        try await discardPartial(partial.index)
        return true
    }
}
