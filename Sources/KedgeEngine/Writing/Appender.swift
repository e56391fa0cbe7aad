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
        var hasMore = true
        while hasMore, offset < limit {
            hasMore = try await writeNextChunk(reader)
        }
        if hasMore {
            guard try await isAtEnd(reader, parts: parts) else {
                throw EngineError(.lengthMismatch, "The body goes on after the file's end.")
            }
        }
        if put.completes { try await complete() }
        try await commitDeferred()
    }

    /// Writes up to the end of the chunk that holds the offset; false when the body has ended.
    private mutating func writeNextChunk(_ reader: any ByteReader) async throws -> Bool {
        let ledger = await live.ledger
        let layout = ledger.record.layout
        let index = layout.index(ofByteAt: offset)
        guard let full = layout.range(ofChunk: index) else { throw EngineError(.fileTooLarge) }
        let chunk = ByteRange(start: full.start, end: min(full.end, limit))
        // A native client may hold this chunk's slot; appending stops it like any other writer.
        let slot = ActiveWriter()
        slot.attach { [writer] in writer.interrupt(.replaced) }
        let claimed = try await live.claim(.chunk(index), for: slot)
        do {
            // Asked only now: the writer that was stopped may just have committed the chunk, and what
            // is committed is never written to again.
            let known = claimed.digest(ofChunk: index)
            let hasMore = try await pass(reader, index: index, chunk: chunk, committed: known)
            await live.release(.chunk(index), slot)
            return hasMore
        } catch {
            await live.release(.chunk(index), slot)
            throw error
        }
    }

    private mutating func pass(
        _ reader: any ByteReader, index: Int, chunk: ByteRange, committed: SHA256Digest?
    ) async throws -> Bool {
        if let committed {
            return try await compare(reader, chunk: chunk, with: committed)
        }
        let partial = await live.ledger.partials[index]
        // The writer that was stopped may have left more than this body knew of.
        guard chunk.start + (partial?.byteCount ?? 0) == offset else {
            var error = EngineError(.offsetMismatch)
            error.expectedOffset = await live.ledger.contiguousOffset
            throw error
        }
        let staging = try await live.stagingArea()
        let isFresh = partial == nil && put.checksum == nil
        let fileHash = isFresh ? await live.prefix.borrow(at: chunk.start) : nil
        var pass = try ChunkPass(
            chunk: chunk, resuming: partial, staging: staging, parts: parts, fileHash: fileHash,
            appendHash: appendHash)
        let end = await pass.run(reader)
        appendHash = pass.appendHash
        offset = pass.offset
        if case .interrupted(let error) = end {
            if put.checksum == nil {
                await live.keepPartial(of: pass, index: index, declaredDigest: nil)
            }
            throw writer.interruption?.error ?? error
        }
        if case .bodyEnded = end {
            try await finishShort(pass, index: index)
            return false
        }
        try await record(pass, index: index)
        return true
    }

    /// The body ended inside a chunk: a partial, or the file's short last chunk.
    private mutating func finishShort(_ pass: ChunkPass, index: Int) async throws {
        if put.completes {
            try await complete()
            try await record(pass, index: index)
        } else if put.checksum == nil {
            await live.keepPartial(of: pass, index: index, declaredDigest: nil)
            guard await live.ledger.contiguousOffset >= offset else {
                throw EngineError(.internalError, cause: "the end of an append was not saved")
            }
        } else {
            try verifyChecksum()
            try await commitDeferred()
            await live.keepPartial(of: pass, index: index, declaredDigest: nil)
        }
    }

    private mutating func record(_ pass: ChunkPass, index: Int) async throws {
        guard pass.verified.byteCount > 0 else { return }
        let chunk = CommittedChunk(
            index: index, byteCount: pass.verified.byteCount, digest: pass.verified.digest())
        if put.checksum != nil {
            deferredChunks.append(chunk)
            return
        }
        try await live.commitDurably([chunk], staging: pass.staging)
        if let fileHash = pass.fileHash {
            await live.prefix.accept(fileHash, startingAt: pass.start)
        }
        await live.followPrefix()
    }

    /// The chunk is committed already: the same bytes pass by, others are a conflict.
    private mutating func compare(
        _ reader: any ByteReader, chunk: ByteRange, with stored: SHA256Digest
    ) async throws -> Bool {
        var hasher = SHA256Hasher()
        let buffer = parts.buffers.take()
        defer { parts.buffers.give(buffer) }
        var hasMore = true
        while hasMore, hasher.byteCount < chunk.byteCount {
            buffer.removeAll()
            let rest = chunk.byteCount - hasher.byteCount
            hasMore = try await reader.fill(buffer, limit: Int(min(rest, Int64(buffer.capacity))))
            hasher.update(buffer.bytes)
            appendHash?.update(buffer.bytes)
        }
        offset = chunk.start + hasher.byteCount
        guard hasher.byteCount == chunk.byteCount else { return false }
        guard hasher.digest() == stored else {
            throw EngineError.conflict(stored: stored, sent: hasher.digest())
        }
        return hasMore
    }

    /// Sets the size of a file whose end has come.
    private func complete() async throws {
        guard await live.ledger.record.fileSize == nil else { return }
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
        try verifyChecksum()
        guard !deferredChunks.isEmpty else { return }
        try await live.commitDurably(deferredChunks, staging: try await live.stagingArea())
        deferredChunks = []
        await live.followPrefix()
    }
}
