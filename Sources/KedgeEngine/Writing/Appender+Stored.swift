internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

// Bytes of a body that were already received through another front end.
extension Appender {
    /// Compares the body with the partial of a native client. Equal bytes are skipped. Otherwise
    /// the partial is set aside as a rival: the append's client can send its body again, and the
    /// native client can continue its own.
    ///
    /// A partial that cannot be set aside stays, and the offset includes it. The append's client
    /// continues after it. If the whole chunk then does not match the declared digest, the partial
    /// is discarded. While the file size is unknown, the append is refused instead.
    ///
    /// - Returns: Whether the body may continue.
    /// - Throws: `OFFSET_MISMATCH`, or `CHUNK_CONFLICT` for a refused append; with a checksum also
    ///   `CHUNK_HASH_MISMATCH`.
    mutating func passOver(
        _ partial: PartialRecord, chunk: ByteRange, _ reader: any ByteReader
    ) async throws -> Bool {
        let (passed, hasMore) = try await readWithoutWriting(partial.byteCount, reader)
        offset = chunk.start + passed.byteCount
        let stored =
            passed.byteCount == partial.byteCount
            ? SHA256Hasher(savedState: partial.hashState)?.digest()
            : try await digestOfStored(chunk.start, byteCount: passed.byteCount)
        guard passed.digest() == stored else {
            if put.countsAtItsEnd {
                // A damaged body must not change anything.
                try await verifyRest(of: reader, hasMore: hasMore)
            }
            if try await !session.keepAsRival(partial) {
                // Earlier chunks are sound. Without committing them, every retry would be refused
                // here again.
                try await commitDeferred()
                // Without a size, the last chunk is not compared with a declared digest. The client
                // must not continue after bytes that are known to be different.
                guard hadSize else {
                    throw EngineError(.chunkConflict, "This chunk was received with other bytes.")
                }
            }
            throw await offsetMismatch()
        }
        return hasMore
    }

    /// Compares the body with a committed chunk and skips equal bytes.
    ///
    /// - Returns: Whether the body may continue.
    /// - Throws: `CHUNK_CONFLICT` for other bytes.
    mutating func compare(
        _ reader: any ByteReader, chunk: ByteRange, with stored: SHA256Digest
    ) async throws -> Bool {
        let (passed, hasMore) = try await readWithoutWriting(chunk.byteCount, reader)
        offset = chunk.start + passed.byteCount
        if passed.byteCount < chunk.byteCount {
            let same = try await digestOfStored(chunk.start, byteCount: passed.byteCount)
            guard passed.digest() == same else {
                throw EngineError(
                    .chunkConflict, "The bytes differ from those of a received chunk.")
            }
            return false
        }
        guard passed.digest() == stored else {
            if put.countsAtItsEnd { try await verifyRest(of: reader, hasMore: hasMore) }
            throw EngineError.conflict(stored: stored, sent: passed.digest())
        }
        return hasMore
    }

    /// Returns the SHA-256 of stored bytes; nil when this node cannot find them, so that they never
    /// count as equal.
    private func digestOfStored(_ start: Int64, byteCount: Int64) async throws -> SHA256Digest? {
        let area = try await session.stagingArea()
        do {
            return try await digest(of: start..<start + byteCount, context: context, area.read)
        } catch ByteStoreError.notFound {
            return nil
        }
    }

    /// Reads the rest of a body that is not written, to distinguish a damaged body from one with
    /// other bytes.
    ///
    /// - Throws: `CHUNK_HASH_MISMATCH`.
    private mutating func verifyRest(of reader: any ByteReader, hasMore: Bool) async throws {
        if hasMore { _ = try await readWithoutWriting(max(0, limit - offset), reader) }
        try await verifyChecksum()
    }

    /// Reads and hashes up to `byteCount` bytes.
    private mutating func readWithoutWriting(
        _ byteCount: Int64, _ reader: any ByteReader
    ) async throws -> (SHA256Hasher, hasMore: Bool) {
        var hasher = SHA256Hasher()
        let buffer = context.buffers.take()
        defer { context.buffers.give(buffer) }
        var hasMore = true
        while hasMore, hasher.byteCount < byteCount {
            buffer.removeAll()
            let rest = byteCount - hasher.byteCount
            hasMore = try await reader.fill(buffer, limit: Int(min(rest, Int64(buffer.capacity))))
            let hashers = (hasher, appendHash)
            (hasher, appendHash) = try await context.pool.run {
                var (hasher, appendHash) = hashers
                if appendHash == nil { hasher.update(buffer.bytes) }
                appendHash?.update(buffer.bytes, beside: &hasher)
                return (hasher, appendHash)
            }
        }
        return (hasher, hasMore)
    }
}
