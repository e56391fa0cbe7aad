internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// Writes the body of one append into chunks. While one chunk is made durable, the next one is
/// received.
struct Appender {
    let session: LiveSession
    let context: EngineContext
    let writer: ActiveWriter
    let put: AppendPut
    /// Largest offset the file may reach.
    let limit: Int64

    /// Chunks of a body with a checksum; they are recorded only at its end.
    var deferredChunks: [CommittedChunk] = []
    /// The area that the deferred chunks were written to. Syncing another one would not make them
    /// durable.
    var deferredStaging: (any StagingArea)?
    /// Slots of chunks whose rows are not written yet. No other writer may write those bytes
    /// meanwhile.
    var heldSlots: [(index: Int, writer: ActiveWriter)] = []
    /// The commit of the chunk before the one that is being received.
    var commitUnderWay: ChunkCommit?
    var appendHash: AppendHash?
    /// True when the size of the file was known before this append.
    private(set) var hadSize = false
    var offset: Int64

    init(
        session: LiveSession, context: EngineContext, writer: ActiveWriter, put: AppendPut,
        limit: Int64
    ) {
        self.session = session
        self.context = context
        self.writer = writer
        self.put = put
        self.limit = limit
        offset = put.offset
        appendHash = AppendHash(put)
    }

    /// Writes the body chunk by chunk until it ends.
    mutating func run(_ reader: any ByteReader) async throws {
        do {
            try await writeAll(reader)
            await releaseSlots()
        } catch {
            // A commit that failed has stopped the append, so its error is the reason.
            let failure = await commitUnderWay?.failure()
            await releaseSlots()
            throw failure ?? error
        }
    }

    /// Waits for the commit under way.
    mutating func finishCommit() async throws {
        guard let commit = commitUnderWay else { return }
        if let failure = await commit.failure() { throw failure }
        commitUnderWay = nil
    }

    private mutating func releaseSlots() async {
        for (index, writer) in heldSlots { await session.release(.chunk(index), writer) }
        heldSlots = []
    }

    private mutating func writeAll(_ reader: any ByteReader) async throws {
        var tail: ChunkWrite?
        var hasMore = true
        hadSize = await session.ledger.record.fileSize != nil
        if await session.ledger.lacksOnlyLastCommit {
            (hasMore, tail) = try await writeNextChunk(reader)
        }
        while hasMore, offset < limit {
            (hasMore, tail) = try await writeNextChunk(reader)
        }
        try await finishCommit()
        if hasMore, try await !reader.isAtEnd(through: context.buffers) {
            // Bytes up to the limit are sound, and count like those of any interrupted body.
            if let tail, !put.countsAtItsEnd { try await finish(tail, isLast: false) }
            throw await beyondLimit()
        }
        try await verifyChecksum()
        if put.countsAtItsEnd, let size = put.declaredSize { try await session.declareSize(size) }
        if put.completes { try await declareEnd(keeping: tail) }
        try await commitDeferred()
        if let tail { try await finish(tail, isLast: put.completes) }
    }

    /// Returns the error for a body that continues beyond the limit.
    private func beyondLimit() async -> EngineError {
        if put.declaredSize == limit { return EngineError(.lengthMismatch, Self.beyondEnd) }
        let record = await session.ledger.record
        guard record.fileSize != limit else {
            return EngineError(.lengthMismatch, Self.beyondEnd)
        }
        return .tooLarge(
            "The body is larger than the upload may be.",
            maxBytes: context.maxFileSize(of: record))
    }

    private static let beyondEnd = "The body continues after the end of the file."

    /// Writes up to the end of the chunk that holds the offset.
    ///
    /// - Returns: Whether the body may continue, and the write of an incomplete chunk.
    private mutating func writeNextChunk(
        _ reader: any ByteReader
    ) async throws -> (hasMore: Bool, tail: ChunkWrite?) {
        let layout = await session.ledger.record.layout
        let index = layout.index(ofByteAt: offset)
        guard let chunk = layout.range(ofChunk: index) else { throw EngineError(.fileTooLarge) }
        // A native client may hold this chunk's slot; appending stops it like any other writer.
        let slot = try await session.claimChunk(index, stopping: writer)
        heldSlots.append((index, slot))
        // Read after the claim: the stopped writer may just have committed the chunk, and a
        // committed chunk is never written again.
        let view = try await session.view(ofChunk: index)
        if let committed = view.digest {
            guard offset == chunk.start else { throw await offsetMismatch() }
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
        if !put.countsAtItsEnd { await releaseSlots() }
    }

    private mutating func write(
        _ reader: any ByteReader, index: Int, chunk: ByteRange, partial: PartialRecord?
    ) async throws -> (hasMore: Bool, tail: ChunkWrite?) {
        if let partial, offset == chunk.start, partial.byteCount > 0,
            try await !passOver(partial, chunk: chunk, reader)
        {
            // A body that ends exactly where the partial does may make it the file's last chunk.
            let isWhole = offset == chunk.start + partial.byteCount
            return (false, isWhole ? try await makeWrite(index, chunk, partial) : nil)
        }
        // The stopped writer may have saved more bytes than this body knew of.
        guard chunk.start + (partial?.byteCount ?? 0) == offset else {
            throw await offsetMismatch()
        }
        var write = try await makeWrite(index, chunk, partial)
        // Reserves the chunk only, as for a native chunk: the length of the body may be unknown.
        let isFilled = try await reserving(write.missingByteCount) {
            try await write.receive(reader)
        }
        (appendHash, offset) = (write.appendHash, write.offset)
        try await finishCommit()
        // Cut off by the limit of a file of unknown size, the chunk is not whole yet.
        guard isFilled, chunk.end <= limit else { return (isFilled, write) }
        try await record(write, isLast: write.offset == limit)
        return (true, nil)
    }

    private func makeWrite(
        _ index: Int, _ chunk: ByteRange, _ partial: PartialRecord?
    ) async throws -> ChunkWrite {
        try ChunkWrite(
            index, of: session, writer: writer, chunk: chunk, end: min(chunk.end, limit),
            resuming: partial, declaredDigest: partial?.declaredDigest,
            staging: try await session.stagingArea(), isKept: !put.countsAtItsEnd,
            hashesFile: partial == nil && !put.countsAtItsEnd, appendHash: appendHash,
            after: commitUnderWay)
    }

    /// Runs the closure while space for `byteCount` bytes is reserved.
    ///
    /// - Throws: `STORAGE_FULL`.
    private func reserving(
        _ byteCount: Int64, _ body: () async throws -> Bool
    ) async throws -> Bool {
        guard byteCount > 0 else { return try await body() }
        return try await context.space.reserving(byteCount, of: context.bytes, body)
    }

    /// Returns the error with the offset after all durable bytes.
    func offsetMismatch() async -> EngineError {
        // A failed commit shows in the offset.
        _ = await commitUnderWay?.failure()
        return .offsetMismatch(expected: await session.ledger.contiguousOffset)
    }
}

/// The commit of a chunk in the background, while an append receives the next chunk.
struct ChunkCommit: Sendable {
    private let task: Task<(any Error)?, Never>

    /// Starts the commit. Releases the chunk's slot at its end, and stops the append if it failed.
    /// Not cancelled with the append, whose received bytes count; the append waits for it.
    init(_ write: ChunkWrite, of session: LiveSession, slot: ActiveWriter, writer: ActiveWriter) {
        task = Task {
            var failure: (any Error)?
            do {
                try await write.commit()
            } catch {
                failure = error
            }
            await session.release(.chunk(write.index), slot)
            if failure != nil { writer.interrupt(.commitFailed) }
            return failure
        }
    }

    /// Waits for the end of the commit, and returns its error.
    func failure() async -> (any Error)? { await task.value }
}
