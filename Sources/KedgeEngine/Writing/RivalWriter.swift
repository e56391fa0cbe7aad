internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// Writes a body for a chunk that has a partial of other bytes, or of bytes in doubt.
///
/// The body lies beside the partial until it is whole and matches its declared digest. Bytes that
/// an earlier request left of it are read again first.
///
/// In a bucket, chunk and partial are different objects: the chunk is uploaded, and its commit ends
/// the partial. On a disk, both have the same offset in one file. So the partial's row is removed
/// first. Then its bytes are replaced and synced, and the chunk is committed. A process that ends
/// in between leaves no partial, and the rival as saved last.
///
/// A refused or interrupted body leaves the partial unchanged. A body that ends before the chunk is
/// synced and recorded as the rival.
struct RivalWriter {
    let session: LiveSession
    let context: EngineContext
    let writer: ActiveWriter
    let put: ChunkPut
    let chunk: ByteRange
    /// Offset after the body's last byte.
    let end: Int64
    /// Whether received bytes count when the body breaks off.
    let isKept: Bool

    /// Writes the rest of a rival, or all of it, and replaces the partial with it.
    ///
    /// - Throws: The errors of ``ChunkWriter/write(_:chunk:range:resuming:body:)``. A wrong digest
    ///   discards only the rival.
    func write(
        bodyStart: Int64, resuming rival: PartialRecord?, body: some ByteBody
    ) async throws {
        let area = try await open(rival)
        try await lending(area) {
            let reader = try await body.makeReader()
            let begun = try makeWrite(rival, area)
            try await reader.skip(begun.offset - bodyStart, through: context.buffers)
            try await finish(begun, reader, body)
        }
    }

    /// Reads a body that starts with the chunk, beside the partial that it may repeat.
    ///
    /// - Returns: False when the body repeats the partial. Those bytes are consumed, and the caller
    ///   writes the rest.
    /// - Throws: The errors of ``write(bodyStart:resuming:body:)``.
    func write(
        comparing partial: PartialRecord, reader: any ByteReader, body: some ByteBody
    ) async throws -> Bool {
        let area = try await open(nil)
        return try await lending(area) {
            let first = ByteRange(start: chunk.start, end: chunk.start + partial.byteCount)
            var pass = try ChunkPass(chunk: first, resuming: nil, staging: area, context: context)
            try requireFilled(await pass.run(reader), pass)
            let known = SHA256Hasher(savedState: partial.hashState)?.digest()
            guard pass.verified.digest() != known else { return false }
            guard isKept || end == chunk.end else { throw EngineError.onlyWhole }
            let begun = PartialRecord(
                index: put.index, byteCount: pass.verified.byteCount,
                hashState: pass.verified.savedState, declaredDigest: put.digest)
            // The room for the body is reserved already; this is for the chunk's place.
            try await context.space.reserving(chunk.byteCount, of: context.bytes) {
                try await finish(try makeWrite(begun, area), reader, body)
            }
            return true
        }
    }

    private func open(_ rival: PartialRecord?) async throws -> any StagingArea {
        let staging = try await session.stagingArea()
        // A recorded rival that no body can continue.
        if isKept, rival == nil, try await session.view(ofChunk: put.index).rival != nil {
            try await session.discardPartial(put.index, isRival: true)
        }
        do {
            return try await staging.openRival(
                range(byteCount: rival?.byteCount ?? 0), isKept: isKept)
        } catch ByteStoreError.notFound where rival != nil {
            try await session.discardPartial(put.index, isRival: true)
            throw EngineError.offsetMismatch(expected: chunk.start)
        }
    }

    /// Closes the area in the end, and removes its bytes unless a row counts them.
    private func lending<Value>(
        _ area: any StagingArea, _ body: () async throws -> Value
    ) async throws -> Value {
        let result = await Result { try await body() }
        await area.close()
        if isKept, await session.ledger.rivals[put.index] == nil {
            // A failure leaves a file that the next rival of this chunk, or the next start,
            // removes.
            try? await session.stagingArea().removeRival(ofChunk: put.index)
        }
        return try result.get()
    }

    private func range(byteCount: Int64) -> ChunkRange {
        ChunkRange(index: put.index, start: chunk.start, byteCount: byteCount)
    }

    private func makeWrite(
        _ begun: PartialRecord?, _ area: any StagingArea
    ) throws -> ChunkWrite {
        try ChunkWrite(
            put.index, of: session, writer: writer, chunk: chunk, end: end, resuming: begun,
            declaredDigest: put.digest, staging: area, isKept: isKept, isRival: true)
    }

    private func requireFilled(_ end: PassEnd, _ pass: ChunkPass) throws {
        switch end {
        case .filled: return
        case .bodyEnded:
            throw EngineError(
                .lengthMismatch, "The body ended \(pass.end - pass.offset) bytes early.")
        case .interrupted(let error): throw writer.interruption?.error ?? error
        }
    }

    private func finish(
        _ begun: ChunkWrite, _ reader: any ByteReader, _ body: some ByteBody
    ) async throws {
        var write = begun
        try await write.receiveAll(reader)
        guard end == chunk.end else {
            try await reader.requireEnd(of: body, through: context.buffers)
            return try await write.commitPartial()
        }
        let digest = write.digest
        guard digest == put.digest else {
            if isKept { try await session.discardPartial(put.index, isRival: true) }
            throw EngineError.wrongHash(expected: put.digest, actual: digest)
        }
        try await reader.requireEnd(of: body, through: context.buffers)
        // Awaited here. A task of its own, so that cancellation cannot discard the partial without
        // committing the chunk.
        try await Task { [write] in try await replacePartial(with: write.staging) }.value
    }

    /// Checks that all bytes of the body are stored and match the digest. Of bytes that an earlier
    /// request left, only the saved hash is known so far.
    ///
    /// - Throws: `UNAVAILABLE` after a damaged rival was discarded. The partial stays unchanged.
    private func requireWhole(_ area: any StagingArea) async throws {
        let view = try await session.view(ofChunk: put.index)
        do {
            try await area.gather(
                range(byteCount: view.rival?.byteCount ?? 0),
                after: isKept ? view.rival?.location : nil)
            guard isKept, view.rival != nil else { return }
            if try await digest(
                of: chunk.start..<chunk.end, context: context, area.read) == put.digest
            {
                return
            }
        } catch ByteStoreError.notFound {
            // Reported below.
        } catch ByteStoreError.failed {
            // The disk cannot read the bytes.
        }
        if isKept { try await session.discardPartial(put.index, isRival: true) }
        throw EngineError(
            .unavailable, cause: "the bytes of a rival partial do not match its digest")
    }

    /// Copies the verified bytes to the chunk's place and commits the chunk.
    private func replacePartial(with area: any StagingArea) async throws {
        try await requireWhole(area)
        let view = try await session.view(ofChunk: put.index)
        // On a disk the partial lies in the chunk's place: its row must go before its bytes are
        // overwritten.
        if view.partial != nil, context.traits.overwritesPartials {
            try await session.discardPartial(put.index)
        }
        let staging = try await session.stagingArea()
        let copied = try await copy(from: area, to: staging)
        guard copied == put.digest else {
            if isKept { try await session.discardPartial(put.index, isRival: true) }
            throw EngineError(
                .unavailable, cause: "the copied bytes of a rival partial do not match")
        }
        let committed = CommittedChunk(
            index: put.index, byteCount: chunk.byteCount, digest: put.digest)
        try await session.commitDurably([committed], staging: staging, isWhole: true)
        await session.followPrefix()
    }

    private func copy(
        from area: any StagingArea, to staging: any StagingArea
    ) async throws -> SHA256Digest {
        var hasher = SHA256Hasher()
        let buffer = context.buffers.take()
        defer { context.buffers.give(buffer) }
        while hasher.byteCount < chunk.byteCount {
            let offset = chunk.start + hasher.byteCount
            buffer.removeAll()
            try await area.read(into: buffer, at: offset, byteCount: chunk.end - offset)
            hasher = await context.hash(buffer, after: hasher)
            try await staging.write(buffer, at: offset)
        }
        return hasher.digest()
    }
}
