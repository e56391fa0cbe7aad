internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// What there is of unfinished chunks: recorded while it comes, and taken up by the next run.
extension DownloadWorker {
    /// A chunk with what an earlier run left of it.
    func takeUp(
        _ index: Int, range: ByteRange, turn: FileHashTurn, from temp: TempFile
    ) async throws -> ChunkFetch {
        let environment = context.environment
        let pace = PartialPace(limits: environment.partialLimits, at: environment.now())
        var chunk = ChunkFetch(index: index, range: range, turn: turn, pace: pace)
        guard let partial = partials[index] else { return chunk }
        let found = try await context.onDisk("read back", "download's folder") {
            try partial.readBack(range, in: temp.file)
        }
        guard let found else {
            try await context.store.discardPartial(ofChunk: index, of: context.lease)
            return chunk
        }
        chunk.part = ChunkPart(chunk: found)
        let synced = min(partial.synced?.offsetBytes ?? 0, found.byteCount)
        chunk.pace.synced(synced, at: environment.now())
        chunk.pace.noted(found.byteCount)
        return chunk
    }

    /// Records what there is of a chunk when it is time.
    func record(_ chunk: inout ChunkFetch, _ writer: inout BodyWriter) async throws {
        let now = context.environment.now()
        switch chunk.pace.step(
            arrived: writer.arrivedByteCount, written: writer.part.byteCount, at: now)
        {
        case .nothing:
            break
        case .note:
            chunk.part = writer.part
            try await note(&chunk)
        case .sync:
            try await writer.flush()
            chunk.part = writer.part
            try await makeDurable(&chunk)
        }
    }

    /// Notes what there is of a chunk in the file: after a kill the next run goes on from there.
    func note(_ chunk: inout ChunkFetch) async throws {
        // A whole one is confirmed next.
        guard !chunk.isWhole, chunk.part.byteCount > chunk.pace.notedByteCount else { return }
        try await context.store.notePartial(
            chunk.part.saved, ofChunk: chunk.index, of: context.lease)
        chunk.pace.noted(chunk.part.byteCount)
    }

    /// Makes what there is of a chunk durable: sync first, then its row.
    func makeDurable(_ chunk: inout ChunkFetch) async throws {
        guard chunk.part.byteCount > chunk.pace.syncedByteCount else { return }
        unsyncedPartials[chunk.index] = chunk.part.saved
        try await syncWaiting(answer: nil)
        chunk.pace.synced(chunk.part.byteCount, at: context.environment.now())
    }

    /// What came is in doubt: nothing of the chunk counts any more.
    func discard(_ chunk: inout ChunkFetch) async throws {
        (unsyncedPartials[chunk.index], syncingPartials[chunk.index]) = (nil, nil)
        chunk.reset(at: context.environment.now())
        try await context.store.discardPartial(ofChunk: chunk.index, of: context.lease)
    }
}

extension DownloadPartial {
    /// Reads a chunk's bytes back and compares them with the states of its hash.
    ///
    /// Bytes beyond the last sync are written once more: a sync of them may have failed unnoticed in an
    /// earlier run, and a later one of clean pages proves nothing (fsync(2)).
    ///
    /// - Returns: The hash of what is there, of all that was noted or of what was synced; nil when
    ///   neither is.
    func readBack(_ range: ByteRange, in file: any OpenFile) throws -> SHA256Hasher? {
        guard noted.offsetBytes <= range.byteCount else { return nil }
        let syncedCount = synced?.offsetBytes ?? 0
        var hasher = SHA256Hasher()
        try Self.read(&hasher, upTo: syncedCount, from: range.start, in: file, rewriting: false)
        if let synced, hasher.savedState != synced.state { return nil }
        let durable = hasher
        try Self.read(
            &hasher, upTo: noted.offsetBytes, from: range.start, in: file, rewriting: true)
        if hasher.savedState == noted.state { return hasher }
        return syncedCount > 0 ? durable : nil
    }

    private static func read(
        _ hasher: inout SHA256Hasher, upTo end: Int64, from start: Int64, in file: any OpenFile,
        rewriting: Bool
    ) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        while hasher.byteCount < end {
            let limit = min(buffer.count, Int(clamping: end - hasher.byteCount))
            let offset = start + hasher.byteCount
            let count = try file.read(
                into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<limit]), at: offset)
            guard count > 0 else { return }
            let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            if rewriting { try file.write(bytes, at: offset) }
            hasher.update(bytes)
        }
    }
}
