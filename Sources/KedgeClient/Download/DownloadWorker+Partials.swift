internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// Partials of chunks: recorded while bytes arrive, resumed by the next run.
extension DownloadWorker {
    /// Returns a chunk to fetch, with the verified bytes that an earlier run left of it.
    func takeUp(
        _ index: Int, range: ByteRange, fileHashStep: FileHashStep, from temp: TempFile
    ) async throws -> ChunkFetch {
        let environment = context.environment
        let pace = CheckpointPace(limits: environment.checkpointLimits, at: environment.now())
        var chunk = ChunkFetch(index: index, range: range, fileHashStep: fileHashStep, pace: pace)
        guard let partial = partials[index] else { return chunk }
        let found = try await context.onDisk("read back", .downloadFolder) {
            try partial.readBack(range, in: temp.file)
        }
        guard let found else {
            try await context.store.discardPartial(ofChunk: index, of: context.lease)
            return chunk
        }
        chunk.progress = ChunkProgress(chunk: found)
        let synced = min(partial.synced?.offsetBytes ?? 0, found.byteCount)
        chunk.pace.synced(synced, at: environment.now())
        chunk.pace.noted(found.byteCount)
        return chunk
    }

    /// Records the chunk's progress when a note or a sync is due.
    func record(_ chunk: inout ChunkFetch, _ writer: inout BodyWriter) async throws {
        let now = context.environment.now()
        switch chunk.pace.step(
            arrived: writer.arrivedByteCount, written: writer.progress.byteCount, at: now)
        {
        case .nothing:
            break
        case .note:
            chunk.progress = writer.progress
            try await note(&chunk)
        case .sync:
            try await writer.flush()
            chunk.progress = writer.progress
            try await makeDurable(&chunk)
        }
    }

    /// Notes the chunk's bytes in the file. After a kill, the next run resumes from there.
    func note(_ chunk: inout ChunkFetch) async throws {
        // A complete chunk is confirmed next.
        guard !chunk.isWhole, chunk.progress.byteCount > chunk.pace.notedByteCount else { return }
        try await context.store.notePartial(
            chunk.progress.saved, ofChunk: chunk.index, of: context.lease)
        chunk.pace.noted(chunk.progress.byteCount)
    }

    /// Makes the chunk's bytes durable: syncs, then writes its row.
    func makeDurable(_ chunk: inout ChunkFetch) async throws {
        guard chunk.progress.byteCount > chunk.pace.syncedByteCount else { return }
        unsyncedPartials[chunk.index] = chunk.progress.saved
        try await syncWaiting(answer: nil)
        chunk.pace.synced(chunk.progress.byteCount, at: context.environment.now())
    }

    /// Discards all bytes of the chunk, because they are in doubt.
    func discard(_ chunk: inout ChunkFetch) async throws {
        (unsyncedPartials[chunk.index], syncingPartials[chunk.index]) = (nil, nil)
        chunk.reset(at: context.environment.now())
        try await context.store.discardPartial(ofChunk: chunk.index, of: context.lease)
    }
}

extension DownloadPartial {
    /// Reads a chunk's bytes back and compares them with the saved states of its hash.
    ///
    /// Writes bytes beyond the last sync once more: an earlier run's sync of them may have failed
    /// unnoticed, and a later sync of clean pages proves nothing (fsync(2)).
    ///
    /// - Returns: The hash of all noted bytes, or else of the synced ones; nil if neither match.
    func readBack(_ range: ByteRange, in file: any OpenFile) throws -> SHA256Hasher? {
        guard noted.offsetBytes <= range.byteCount else { return nil }
        let syncedCount = synced?.offsetBytes ?? 0
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        var hasher = SHA256Hasher()
        try hasher.update(upTo: syncedCount, through: buffer) { memory, hashedByteCount in
            try file.read(into: memory, at: range.start + hashedByteCount)
        }
        if let synced, hasher.savedState != synced.state { return nil }
        let durable = hasher
        try hasher.update(upTo: noted.offsetBytes, through: buffer) { memory, hashedByteCount in
            let offset = range.start + hashedByteCount
            let count = try file.read(into: memory, at: offset)
            if count > 0 {
                try file.write(UnsafeRawBufferPointer(rebasing: memory[..<count]), at: offset)
            }
            return count
        }
        if hasher.savedState == noted.state { return hasher }
        return syncedCount > 0 ? durable : nil
    }
}
