internal import KedgeEngine
internal import KedgeFiles
internal import KedgeHash
package import KedgeModel
internal import KedgeTransport

extension S3StagingArea {
    func saveChunk(
        _ range: ChunkRange, digest: SHA256Digest, after earlier: String?
    ) async throws -> String? {
        try checkOpen()
        let location = try await store.seeingThrough { [self] in
            try await save(range, digest, after: pieces(earlier, of: range))
        }
        if store.budget.isExceeded { spool.release(range.start..<range.end) }
        return location.text
    }

    func savePartial(_ range: ChunkRange, after earlier: String?) async throws -> String? {
        try checkOpen()
        let list = try pieces(earlier, of: range)
        guard list.end ?? range.start < range.end else { return earlier }
        return try await store.seeingThrough { [self] in
            try await savePiece(upTo: range, after: list).text
        }
    }

    func gather(_ range: ChunkRange, after earlier: String?) async throws {
        try checkOpen()
        _ = try await store.seeingThrough { [self] in
            try await fetchMissing(pieces(earlier, of: range), ofChunk: range.index)
        }
    }

    private func save(
        _ range: ChunkRange, _ digest: SHA256Digest, after list: PieceList
    ) async throws -> ChunkLocation {
        let offsets = range.start..<range.end
        let pin = spool.pin(offsets)
        defer { spool.unpin(pin) }
        // The pieces stay until the area is removed: if the chunk's row is not written, the
        // partial's row still refers to them.
        if try await fetchMissing(list, ofChunk: range.index) { try await check(offsets, digest) }
        try checkHolds(offsets)
        return try await save(
            range, S3Body(.source(SpoolBody(offsets, of: spool)), digest: digest))
    }

    private func savePiece(
        upTo range: ChunkRange, after list: PieceList
    ) async throws -> PieceList {
        let isLong = list.pieces.count >= PieceList.maxCount
        let offsets = (isLong ? range.start : list.end ?? range.start)..<range.end
        let pin = spool.pin(offsets)
        defer { spool.unpin(pin) }
        if isLong { _ = try await fetchMissing(list, ofChunk: range.index) }
        try checkHolds(offsets)
        let digest = try await store.onPool { [spool] in try spool.digest(of: offsets) }
        let piece = Piece(
            start: offsets.lowerBound, byteCount: Int64(offsets.count), digest: digest)
        _ = try await store.client.putObject(
            store.keys.piece(piece, ofChunk: range.index, key),
            S3Body(.source(SpoolBody(offsets, of: spool)), digest: digest))
        noteAtHand(piece)
        return PieceList(isLong ? [piece] : list.pieces + [piece])
    }

    private func save(_ range: ChunkRange, _ body: S3Body) async throws -> ChunkLocation {
        guard !range.isWholeFile else {
            let object = store.keys.whole(key, body.digest)
            return .object(tag: try await store.client.putObject(object, body))
        }
        let object = store.keys.assembled(key)
        var upload = try await uploads.upload()
        if let tag = await copyPart(range, body.digest, to: upload) { return .part(tag: tag) }
        do throws(S3Failure) {
            return .part(
                tag: try await store.client.uploadPart(range.index + 1, of: object, upload, body))
        } catch {
            guard error.isMissingUpload else { throw error }
        }
        upload = try await uploads.replacement(for: upload)
        return .part(
            tag: try await store.client.uploadPart(range.index + 1, of: object, upload, body))
    }

    /// Makes the store copy the chunk from a known source; nil when it must be uploaded.
    private func copyPart(
        _ range: ChunkRange, _ digest: SHA256Digest, to upload: UploadReference
    ) async -> String? {
        // Only a checksum proves that the store copied the right bytes.
        guard upload.hasChecksums, let copy = copy(of: range), await store.copyTrial.copies() else {
            return nil
        }
        do throws(S3Failure) {
            return try await store.client.copyPart(
                range.index + 1, of: store.keys.assembled(key), upload, from: copy.source,
                copy.range, digest: digest)
        } catch {
            // After any failure the bytes are still here and can be uploaded.
            await store.copyTrial.pause()
            return nil
        }
    }

    private func pieces(_ earlier: String?, of range: ChunkRange) throws -> PieceList {
        guard let list = PieceList(earlier, from: range.start), (list.end ?? 0) <= range.end else {
            throw ByteStoreError.failed("the location of a partial cannot be read")
        }
        return list
    }

    private func checkHolds(_ range: Range<Int64>) throws {
        guard spool.holds(range) else {
            throw ByteStoreError.failed("bytes to save were not written by this process")
        }
    }

    private func check(_ range: Range<Int64>, _ digest: SHA256Digest) async throws {
        let found = try await store.onPool { [spool] in try spool.digest(of: range) }
        guard found == digest else { throw ByteStoreError.notFound }
    }

    /// Fetches the pieces that the spool does not hold; returns whether there were any.
    private func fetchMissing(_ list: PieceList, ofChunk index: Int) async throws -> Bool {
        let missing = list.pieces.filter { !hasAtHand($0) }
        for piece in missing {
            try await fetch(piece, store.keys.piece(piece, ofChunk: index, key))
            noteAtHand(piece)
        }
        return !missing.isEmpty
    }

    private func fetch(_ piece: Piece, _ object: String) async throws {
        let reader = S3BlobReader(
            object, byteCount: piece.byteCount, tag: nil, client: store.client)
        let buffer = store.buffers.take()
        defer { store.buffers.give(buffer) }
        var hasher = SHA256Hasher()
        while hasher.byteCount < piece.byteCount {
            let done = hasher.byteCount
            buffer.removeAll()
            try await reader.read(into: buffer, at: done, byteCount: piece.byteCount - done)
            hasher = try await store.onPool { [spool, hasher] in
                var hasher = hasher
                hasher.update(buffer.bytes)
                try spool.write(buffer.bytes, at: piece.start + done)
                return hasher
            }
        }
        await reader.close()
        guard piece.isMarked(hasher.digest()) else { throw ByteStoreError.notFound }
    }
}

extension Spool {
    private static let stepByteCount = 256 << 10

    /// Reads and hashes a held range; blocks.
    package func digest(of range: Range<Int64>) throws -> SHA256Digest {
        var hasher = SHA256Hasher()
        try withUnsafeTemporaryAllocation(byteCount: Self.stepByteCount, alignment: 4096) {
            buffer in
            try hasher.update(upTo: Int64(range.count), through: buffer) {
                memory, hashedByteCount in
                try read(into: memory, at: range.lowerBound + hashedByteCount)
                return memory.count
            }
        }
        return hasher.digest()
    }
}
