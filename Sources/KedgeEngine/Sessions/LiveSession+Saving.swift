internal import KedgeFiles
internal import KedgeHash
internal import KedgeMetrics
internal import KedgeModel

// Makes chunks and partials durable: bytes first, then their rows.
extension LiveSession {
    /// Commits a chunk, together with its step in the whole-file hash.
    ///
    /// - Parameter step: The file's hash before and after the chunk; nil if it was not computed
    ///   with this chunk.
    func commitDurably(
        _ chunk: CommittedChunk, staging: any StagingArea,
        step: (before: SHA256Hasher, after: SHA256Hasher)?
    ) async throws {
        guard let (before, after) = step else {
            return try await commitDurably([chunk], staging: staging)
        }
        // Proposed before the sync, so that the next chunk need not wait for it.
        prefix.fileHashing.propose(after, from: before)
        do {
            try await commitDurably([chunk], staging: staging)
        } catch {
            prefix.fileHashing.rollBack(stepAt: before.byteCount)
            throw error
        }
        await prefix.accept(stepAt: before.byteCount)
    }

    /// Makes the chunks' bytes durable, then their rows. Both are durable before any client gets an
    /// acknowledgement.
    ///
    /// - Parameter isWhole: Whether the area has every byte of the chunks, so that their partials
    ///   are not needed.
    func commitDurably(
        _ chunks: [CommittedChunk], staging: any StagingArea, isWhole: Bool = false
    ) async throws {
        try requireFitting(chunks)
        let chunks = try await save(chunks, staging: staging, isWhole: isWhole)
        let touch = await touch(writing: chunks.map(\.index))
        let outcomes: [ChunkOutcome]
        do {
            let start = ContinuousClock.now
            outcomes = try await context.metadata.commit(chunks, touching: touch)
            context.metrics.observe(.chunkCommitSeconds, since: start)
        } catch let error as MetadataError {
            if case .wrongState = error { becomeStale() }
            await discardLateBytes(after: error)
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

    /// Checks the lengths of the chunks: the file size may have been declared while they arrived.
    private func requireFitting(_ chunks: [CommittedChunk]) throws {
        let layout = ledger.record.layout
        for chunk in chunks {
            guard let range = layout.range(ofChunk: chunk.index),
                range.byteCount == chunk.byteCount
            else {
                throw EngineError(
                    .chunkOutOfBounds, "The file size was declared during this request.")
            }
            try requirePermitted(range.end)
        }
    }

    /// Makes the bytes of whole chunks durable.
    ///
    /// - Returns: The chunks with their locations in the byte store.
    private func save(
        _ chunks: [CommittedChunk], staging: any StagingArea, isWhole: Bool
    ) async throws -> [CommittedChunk] {
        var saved: [CommittedChunk] = []
        for var chunk in chunks {
            let range = range(of: chunk.index, byteCount: chunk.byteCount)
            let earlier = isWhole ? nil : ledger.partials[chunk.index]?.location
            do {
                chunk.location = try await staging.saveChunk(
                    range, digest: chunk.digest, after: earlier)
            } catch ByteStoreError.notFound where earlier != nil {
                // Perhaps only the first bytes of this chunk are gone. If it is more, the next
                // attempt shows it.
                throw try await invalidatePartial(of: chunk.index)
            } catch ByteStoreError.notFound {
                throw try await invalidateEverything(writing: chunk.index)
            } catch {
                await closeStaging(afterFailureOf: staging)
                throw error
            }
            saved.append(chunk)
        }
        return saved
    }

    /// Leaves bytes to the sweep that were saved after their session had ended. No node scans a
    /// shared store for them, and the sweep of the session may have run before.
    private func discardLateBytes(after error: MetadataError) async {
        switch error {
        case .wrongState, .notFound:
            guard context.traits.leavesLateBytes else { return }
            // A failure here leaves them to `kedge fsck`; the first error is the one to report.
            try? await context.metadata.addToGarbage(ledger.record.stagingKey)
        default: return
        }
    }

    /// Returns the range of a chunk's first bytes.
    private func range(of index: Int, byteCount: Int64) -> ChunkRange {
        let layout = ledger.record.layout
        return ChunkRange(
            index: index, start: layout.range(ofChunk: index)?.start ?? 0, byteCount: byteCount,
            isWholeFile: layout.fileSize == byteCount)
    }

    /// Invalidates the partial of a chunk whose acknowledged bytes are gone.
    ///
    /// - Returns: The error for the client.
    private func invalidatePartial(of index: Int) async throws -> EngineError {
        try await discardPartial(index)
        return EngineError(
            .unavailable, cause: "the first bytes of chunk \(index) of session \(id) are missing")
    }

    /// Invalidates all chunks, because acknowledged bytes of the file are gone.
    ///
    /// - Returns: The error for the client, which asks for the state and sends them again.
    private func invalidateEverything(writing index: Int) async throws -> EngineError {
        becomeStale()
        try await context.metadata.invalidateChunks(touching: await touch(writing: [index]))
        return EngineError(.unavailable, cause: "the saved chunks of session \(id) are missing")
    }

    /// Saves the first bytes of a chunk if possible.
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

    /// Makes the bytes of a body durable that ended before its chunk.
    ///
    /// - Throws: The error that keeps them from counting; `RANGE_MISMATCH` when only a whole chunk
    ///   can count.
    func commitPartial(
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

    /// Syncs and records the first bytes of a chunk, as far as the hash covers them. Does nothing
    /// if that is not more than recorded.
    ///
    /// - Parameter isRival: Whether the bytes are a rival's, in an area of their own.
    func savePartial(
        _ verified: SHA256Hasher, index: Int, declaredDigest: SHA256Digest?,
        staging: any StagingArea, isRival: Bool = false
    ) async throws {
        let known = isRival ? ledger.rivals[index] : ledger.partials[index]
        guard verified.byteCount > known?.byteCount ?? 0 else { return }
        guard !isRival || known != nil || hasRoomForRival else { return }
        // In a shared store, bytes saved for a session that has ended would stay behind.
        guard !context.traits.leavesLateBytes || ledger.record.state == .open else { return }
        var partial = PartialRecord(
            index: index, byteCount: verified.byteCount, hashState: verified.savedState,
            declaredDigest: declaredDigest, isRival: isRival,
            isInDoubt: known?.isInDoubt ?? false)
        do {
            partial.location = try await staging.savePartial(
                range(of: index, byteCount: verified.byteCount), after: known?.location)
        } catch {
            await closeStaging(afterFailureOf: staging)
            throw error
        }
        let touch = await touch(writing: [index])
        do {
            try await context.metadata.savePartial(partial, touching: touch)
        } catch let error as MetadataError {
            await discardLateBytes(after: error)
            throw error
        }
        savedPartial(partial, touch: touch)
    }
}

extension LiveSession {
    /// Maximum number of rivals that one session keeps when their bodies break off. Each takes a
    /// file and up to a chunk of space. An honest client needs at most one for each of its
    /// connections.
    package static let maxRivalCount = 64

    private var hasRoomForRival: Bool { ledger.rivals.count < Self.maxRivalCount }

    /// Marks a partial as in doubt, because the whole chunk did not match its declared digest.
    ///
    /// Bytes acknowledged before stay: the rest may have been damaged in transit. Native clients
    /// are no longer offered the partial. A native body from the chunk's first byte lies beside it
    /// until it is whole; appends continue after it. Bytes of this request are discarded.
    func doubtPartial(_ index: Int, of earlier: PartialRecord?) async throws {
        guard var earlier else { return try await discardPartial(index) }
        earlier.isInDoubt = true
        let touch = await touch(writing: [index])
        try await context.metadata.savePartial(earlier, touching: touch)
        savedPartial(earlier, touch: touch)
    }

    /// Turns the partial of a chunk into its rival, so that other bytes can be written to the
    /// chunk's place. The bytes stay durable, and a body with their declared digest can continue
    /// them.
    ///
    /// - Returns: False when the partial stays: it was received by append, the chunk has a rival
    ///   already, or the session has the maximum number of rivals.
    func keepAsRival(_ partial: PartialRecord) async throws -> Bool {
        guard partial.declaredDigest != nil, ledger.rivals[partial.index] == nil, hasRoomForRival
        else { return false }
        let area = try await stagingArea()
        var rival = partial
        rival.isRival = true
        rival.location = try await area.keepAsRival(
            range(of: partial.index, byteCount: partial.byteCount), location: partial.location)
        let touch = await touch(writing: [partial.index])
        // The rival is recorded before the partial is discarded: a stop in between leaves both.
        try await context.metadata.savePartial(rival, touching: touch)
        savedPartial(rival, touch: touch)
        try await discardPartial(partial.index)
        return true
    }
}
