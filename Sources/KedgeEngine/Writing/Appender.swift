internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// Carries one append from a body into chunks.
struct Appender {
    let live: LiveSession
    let parts: EngineParts
    let writer: ActiveWriter
    let put: AppendPut
    /// Largest offset the file may reach.
    let limit: Int64

    /// With a checksum nothing is recorded before the body's end; these wait for it.
    private var deferredChunks: [CommittedChunk] = []
    /// Slots of chunks whose rows are not written yet: as long, nobody else may write those bytes.
    private var heldSlots: [(index: Int, writer: ActiveWriter)] = []
    private var appendHash: SHA256Hasher?
    private var offset: Int64

    init(
        live: LiveSession, parts: EngineParts, writer: ActiveWriter, put: AppendPut, limit: Int64
    ) {
        self.live = live
        self.parts = parts
        self.writer = writer
        self.put = put
        self.limit = limit
        offset = put.offset
        appendHash = put.checksum == nil ? nil : SHA256Hasher()
    }

    /// Writes the body chunk by chunk until it ends.
    mutating func run(_ reader: any ByteReader) async throws {
        do {
            try await writeAll(reader)
            await releaseSlots()
        } catch {
            await releaseSlots()
            throw error
        }
    }

    private mutating func releaseSlots() async {
        for (index, writer) in heldSlots { await live.release(.chunk(index), writer) }
        heldSlots = []
    }

    private mutating func writeAll(_ reader: any ByteReader) async throws {
        var tail: ChunkPass?
        var hasMore = true
        while hasMore, offset < limit {
            (hasMore, tail) = try await writeNextChunk(reader)
        }
        if hasMore, try await !isAtEnd(reader, parts: parts) {
            // What was written up to the limit is sound, and counts like any interrupted body.
            if let tail, put.checksum == nil { try await finish(tail, isLast: false) }
            let isSized = await live.ledger.record.fileSize != nil
            throw EngineError(
                isSized ? .lengthMismatch : .fileTooLarge, "The body goes on after the file's end.")
        }
        try verifyChecksum()
        if put.completes { try await declareEnd(keeping: tail) }
        try await commitDeferred()
        if let tail { try await finish(tail, isLast: put.completes) }
    }

    /// Writes up to the end of the chunk that holds the offset.
    ///
    /// - Returns: Whether the body may go on, and the pass of a chunk that is not complete.
    private mutating func writeNextChunk(
        _ reader: any ByteReader
    ) async throws -> (hasMore: Bool, tail: ChunkPass?) {
        let layout = await live.ledger.record.layout
        let index = layout.index(ofByteAt: offset)
        guard let chunk = layout.range(ofChunk: index) else { throw EngineError(.fileTooLarge) }
        // A native client may hold this chunk's slot; appending stops it like any other writer, and
        // whoever stops the slot stops the append.
        let slot = ActiveWriter()
        slot.attach { [writer] in writer.interrupt(slot.interruption ?? .replaced) }
        do {
            try await live.claim(.chunk(index), for: slot)
        } catch {
            slot.finish()
            throw error
        }
        heldSlots.append((index, slot))
        // Asked only now: the writer that was stopped may just have committed the chunk, and what is
        // committed is never written to again.
        let view = try await live.view(ofChunk: index)
        if let committed = view.digest {
            let hasMore = try await compare(reader, chunk: chunk, with: committed)
            await releaseSlotsUnlessDeferring()
            return (hasMore, nil)
        }
        let (hasMore, tail) = try await write(
            reader, index: index, chunk: chunk, partial: view.partial)
        if tail == nil { await releaseSlotsUnlessDeferring() }
        return (hasMore, tail)
    }

    private mutating func releaseSlotsUnlessDeferring() async {
        if put.checksum == nil { await releaseSlots() }
    }

    private mutating func write(
        _ reader: any ByteReader, index: Int, chunk: ByteRange, partial: PartialRecord?
    ) async throws -> (hasMore: Bool, tail: ChunkPass?) {
        if let partial, offset == chunk.start, partial.byteCount > 0 {
            let hasMore = try await passOver(partial, chunk: chunk, reader)
            guard hasMore else {
                // A body that ends just where the partial does may make it the file's last chunk.
                let isWhole = offset == chunk.start + partial.byteCount
                return (
                    false,
                    isWhole
                        ? try ChunkPass(
                            chunk: chunk, resuming: partial,
                            staging: try await live.stagingArea(), parts: parts) : nil
                )
            }
        }
        // The writer that was stopped may have left more than this body knew of.
        guard chunk.start + (partial?.byteCount ?? 0) == offset else {
            throw await offsetMismatch()
        }
        // The size of an open-ended body is known only chunk by chunk.
        guard try await parts.bytes.availableBytes() >= chunk.byteCount else {
            throw EngineError(.storageFull)
        }
        let staging = try await live.stagingArea()
        let isFresh = partial == nil && put.checksum == nil
        let turn = isFresh ? HashTurn(live, start: chunk.start) : nil
        let writable = ByteRange(start: chunk.start, end: min(chunk.end, limit))
        let checkpoints =
            put.checksum == nil
            ? Checkpoints(
                live: live, parts: parts, index: index, chunk: writable, resuming: partial,
                declaredDigest: nil, staging: staging) : nil
        var pass = try ChunkPass(
            chunk: writable, resuming: partial, staging: staging, parts: parts,
            turn: turn, appendHash: appendHash, checkpoints: checkpoints)
        let end = await pass.run(reader)
        appendHash = pass.appendHash
        offset = pass.offset
        switch end {
        case .interrupted(let error):
            if put.checksum == nil {
                await live.keepPartial(
                    pass.verified, index: index, declaredDigest: nil, staging: pass.staging)
            }
            throw writer.interruption?.error ?? error
        case .bodyEnded:
            return (false, pass)
        case .filled where chunk.end > limit:
            // Cut by the limit of a file whose size is unknown: not a whole chunk yet.
            return (true, pass)
        case .filled:
            try await record(pass, index: index)
            return (true, nil)
        }
    }

    /// The first bytes of the chunk are there, from a native client. The same bytes pass by; others
    /// drop what is there, and the body has to come again.
    ///
    /// - Returns: Whether the body may go on.
    private mutating func passOver(
        _ partial: PartialRecord, chunk: ByteRange, _ reader: any ByteReader
    ) async throws -> Bool {
        let (passed, hasMore) = try await readWithoutWriting(partial.byteCount, reader)
        offset = chunk.start + passed.byteCount
        guard passed.byteCount == partial.byteCount else { return hasMore }
        guard passed.digest() == SHA256Hasher(savedState: partial.hashState)?.digest() else {
            try await live.discardPartial(partial.index)
            throw await offsetMismatch()
        }
        return hasMore
    }

    /// The chunk is committed already: the same bytes pass by, others are a conflict.
    private mutating func compare(
        _ reader: any ByteReader, chunk: ByteRange, with stored: SHA256Digest
    ) async throws -> Bool {
        let (passed, hasMore) = try await readWithoutWriting(chunk.byteCount, reader)
        offset = chunk.start + passed.byteCount
        guard passed.byteCount == chunk.byteCount else { return false }
        guard passed.digest() == stored else {
            throw EngineError.conflict(stored: stored, sent: passed.digest())
        }
        return hasMore
    }

    /// Reads up to `byteCount` bytes, hashing them.
    private mutating func readWithoutWriting(
        _ byteCount: Int64, _ reader: any ByteReader
    ) async throws -> (SHA256Hasher, hasMore: Bool) {
        var hasher = SHA256Hasher()
        let buffer = parts.buffers.take()
        defer { parts.buffers.give(buffer) }
        var hasMore = true
        while hasMore, hasher.byteCount < byteCount {
            buffer.removeAll()
            let rest = byteCount - hasher.byteCount
            hasMore = try await reader.fill(buffer, limit: Int(min(rest, Int64(buffer.capacity))))
            let hashers = (hasher, appendHash)
            (hasher, appendHash) = try await parts.pool.run {
                var (hasher, appendHash) = hashers
                hasher.update(buffer.bytes)
                appendHash?.update(buffer.bytes)
                return (hasher, appendHash)
            }
        }
        return (hasher, hasMore)
    }

    /// Records a whole chunk, or lets it wait for the checksum.
    private mutating func record(_ pass: ChunkPass, index: Int) async throws {
        let chunk = CommittedChunk(
            index: index, byteCount: pass.verified.byteCount, digest: pass.verified.digest())
        guard put.checksum == nil else {
            deferredChunks.append(chunk)
            return
        }
        try await live.commitDurably(chunk, of: pass)
        await live.followPrefix()
    }

    /// Saves the bytes of the chunk in which the body ended: as the file's short last chunk, or as a
    /// partial.
    private mutating func finish(_ pass: ChunkPass, isLast: Bool) async throws {
        let index = await live.ledger.record.layout.index(ofByteAt: pass.start)
        if isLast, pass.verified.byteCount > 0 {
            try await record(pass, index: index)
            try await commitDeferred()
            return
        }
        try await live.savePartial(
            pass.verified, index: index, declaredDigest: nil, staging: pass.staging)
        guard await live.ledger.contiguousOffset >= offset else {
            throw EngineError(.internalError, cause: "the end of an append was not saved")
        }
    }

    /// The file ends here: sets its size, or holds the end against the size that was declared.
    ///
    /// - Throws: `SIZE_MISMATCH`; the bytes stay and the session goes on.
    private mutating func declareEnd(keeping tail: ChunkPass?) async throws {
        let ledger = await live.ledger
        let isRight =
            ledger.record.fileSize.map { $0 == offset } ?? (ledger.claimedEnd <= offset)
        guard isRight else {
            try await commitDeferred()
            if let tail { try await finish(tail, isLast: false) }
            throw EngineError(.sizeMismatch, "The file is not complete at byte \(offset).")
        }
        guard ledger.record.fileSize == nil else { return }
        try await parts.metadata.declareSize(offset, of: live.id)
        await live.declaredSize(offset)
    }

    private func verifyChecksum() throws {
        guard let checksum = put.checksum, let actual = appendHash?.digest() else { return }
        guard actual == checksum else {
            var error = EngineError(.chunkHashMismatch)
            error.expectedDigest = checksum
            error.actualDigest = actual
            throw error
        }
    }

    private mutating func commitDeferred() async throws {
        guard !deferredChunks.isEmpty else { return }
        let chunks = deferredChunks
        deferredChunks = []
        try await live.commitDurably(chunks, staging: try await live.stagingArea())
        await live.followPrefix()
    }

    private func offsetMismatch() async -> EngineError {
        var error = EngineError(.offsetMismatch)
        error.expectedOffset = await live.ledger.contiguousOffset
        return error
    }
}
