internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

// Bytes of a body that are here already, from another door.
extension Appender {
    /// The first bytes of the chunk are there, from a native client. The same bytes pass by. Others are set
    /// aside, so that the body can come again, and that client goes on after its own.
    ///
    /// With two other bodies there already the partial stays, and the offset counts it. The client
    /// goes on after it; if the whole then does not have the digest that was declared, the partial
    /// is discarded. Where no size is known, the append is refused instead.
    ///
    /// - Returns: Whether the body may go on.
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
            if try await !live.setAside(partial) {
                // What came before is sound. If it did not count, this refusal would come for ever.
                try await commitDeferred()
                // Without a size the last chunk is compared with no declared digest, so this client
                // must not be told to go on behind bytes that are known to be others.
                guard hadSize else {
                    throw EngineError(.chunkConflict, "Other bytes of this chunk are here.")
                }
            }
            throw await offsetMismatch()
        }
        return hasMore
    }

    /// The chunk is committed already: the same bytes pass by, others are a conflict.
    mutating func compare(
        _ reader: any ByteReader, chunk: ByteRange, with stored: SHA256Digest
    ) async throws -> Bool {
        let (passed, hasMore) = try await readWithoutWriting(chunk.byteCount, reader)
        offset = chunk.start + passed.byteCount
        if passed.byteCount < chunk.byteCount {
            let same = try await digestOfStored(chunk.start, byteCount: passed.byteCount)
            guard passed.digest() == same else {
                throw EngineError(
                    .chunkConflict, "The bytes are others than those of a chunk that is here.")
            }
            return false
        }
        guard passed.digest() == stored else {
            if put.countsAtItsEnd { try await verifyRest(of: reader, hasMore: hasMore) }
            throw EngineError.conflict(stored: stored, sent: passed.digest())
        }
        return hasMore
    }

    /// The SHA-256 of bytes that are here; nil when this node cannot read them yet, so that nobody says
    /// that they are the same.
    private func digestOfStored(_ start: Int64, byteCount: Int64) async throws -> SHA256Digest? {
        let area = try await live.stagingArea()
        do {
            return try await digest(of: start..<start + byteCount, parts: parts, area.read)
        } catch ByteStoreError.notFound {
            return nil
        }
    }

    /// Reads what is left of a body that will not be written, to tell a damaged one from one of other bytes.
    ///
    /// - Throws: `CHUNK_HASH_MISMATCH`.
    private mutating func verifyRest(of reader: any ByteReader, hasMore: Bool) async throws {
        if hasMore { _ = try await readWithoutWriting(max(0, limit - offset), reader) }
        try await verifyChecksum()
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
                if appendHash == nil { hasher.update(buffer.bytes) }
                appendHash?.update(buffer.bytes, beside: &hasher)
                return (hasher, appendHash)
            }
        }
        return (hasher, hasMore)
    }
}
