internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

// Recording of an append's bytes.
extension Appender {
    /// Commits a whole chunk, or defers it until the checksum is verified.
    ///
    /// - Parameter isLast: False to commit in the background, while the next chunk is received.
    mutating func record(_ write: ChunkWrite, isLast: Bool) async throws {
        guard !put.countsAtItsEnd else {
            guard deferredStaging.map({ $0 === write.staging }) ?? true else {
                throw EngineError(.unavailable, cause: "the staging area failed during the append")
            }
            deferredStaging = write.staging
            deferredChunks.append(write.chunk)
            return
        }
        try await requireDeclaredDigest(write.chunk)
        guard !isLast else { return try await write.commit() }
        // Before the next chunk asks for the file's hash after this one.
        write.proposeStep()
        commitUnderWay = ChunkCommit(
            write, of: session, slot: heldSlots.removeLast().writer, writer: writer)
    }

    /// Checks a chunk against the digest that a native client declared with the chunk's first
    /// bytes. On a mismatch those bytes are damaged or of another file: they are discarded, and the
    /// chunk must be sent again.
    ///
    /// - Throws: `OFFSET_MISMATCH`.
    private func requireDeclaredDigest(_ chunk: CommittedChunk) async throws {
        let view = try await session.view(ofChunk: chunk.index)
        guard let declared = view.partial?.declaredDigest, declared != chunk.digest,
            // While the file size was unknown, no client declared the digest of a short last chunk.
            chunk.byteCount == view.layout.chunkSize || hadSize
        else { return }
        try await session.discardPartial(chunk.index)
        throw await offsetMismatch()
    }

    /// Saves the chunk in which the body ended: as the file's short last chunk, or as a partial.
    mutating func finish(_ write: ChunkWrite, isLast: Bool) async throws {
        let endsFile = await session.ledger.record.fileSize == write.offset
        if isLast || endsFile, write.byteCount > 0 {
            try await record(write, isLast: true)
            try await commitDeferred()
            return
        }
        // The session may have ended while the body arrived.
        try await session.requireOpen()
        try await write.savePartial()
        guard await session.ledger.contiguousOffset >= offset else {
            throw EngineError(.internalError, cause: "the end of an append was not saved")
        }
    }

    /// Ends the file here: sets its size, or compares the end with the declared size.
    ///
    /// - Throws: `SIZE_MISMATCH`, or `FORBIDDEN` for a file that is too small. The bytes are kept,
    ///   and the session stays open.
    mutating func declareEnd(keeping tail: ChunkWrite?) async throws {
        let ledger = await session.ledger
        let isRight =
            ledger.record.fileSize.map { $0 == offset } ?? (ledger.claimedEnd <= offset)
        let refusal: EngineError? =
            isRight
            ? ledger.record.refusal(ofSize: offset)
            : EngineError(.sizeMismatch, "The file is not complete at byte \(offset).")
        guard let refusal else { return try await session.declareSize(offset) }
        try await commitDeferred()
        if let tail { try await finish(tail, isLast: false) }
        throw refusal
    }

    func verifyChecksum() async throws {
        guard let appendHash else { return }
        if let checksum = put.checksum { try appendHash.require(checksum) }
        if let late = put.lateChecksum { try appendHash.require(try await late()) }
    }

    mutating func commitDeferred() async throws {
        guard let staging = deferredStaging else { return }
        let chunks = deferredChunks
        (deferredChunks, deferredStaging) = ([], nil)
        for chunk in chunks { try await requireDeclaredDigest(chunk) }
        try await session.commitDurably(chunks, staging: staging)
        await session.followPrefix()
    }
}
