internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// The bytes of a complete upload with their digests.
struct SourceBytes: Sendable {
    let byteCount: Int64
    let chunkSize: Int64
    /// Digests of all chunks, in their order.
    let digests: [SHA256Digest]
    let source: StoredByteSource
    /// Drops what this node keeps of stored bytes; see ``StagingArea/dropCached(_:at:)``.
    let dropCached: @Sendable (_ byteCount: Int64, _ offset: Int64) async -> Void
    /// Returns the source from which the store can copy the bytes; nil when it cannot.
    let copySource: @Sendable () async throws -> CopySource?

    /// Compares a chunk with its digest.
    ///
    /// - Throws: ``DamagedChunk``, also when stored bytes of the chunk are missing.
    func verify(_ index: Int, context: EngineContext) async throws {
        guard index < digests.count else { throw DamagedChunk(index: index) }
        if try await isIntact(index, context: context) { return }
        // Only what is stored counts: this node's copies may be old, or damaged in memory.
        let start = Int64(index) * chunkSize
        await dropCached(min(chunkSize, byteCount - start), start)
        guard try await isIntact(index, context: context) else { throw DamagedChunk(index: index) }
    }

    private func isIntact(_ index: Int, context: EngineContext) async throws -> Bool {
        let start = Int64(index) * chunkSize
        let range = start..<min(start + chunkSize, byteCount)
        do {
            return try await digest(of: range, context: context, source) == digests[index]
        } catch ByteStoreError.notFound {
            return false
        }
    }
}

/// The error for a stored chunk that no longer matches its digest.
struct DamagedChunk: Error {
    let index: Int
    /// True when the chunk matched at first, and bytes that no longer did were copied.
    var isCopied = false
}

/// The error for damaged bytes of a partial upload that is not a file.
struct DamagedSourceUpload: Error {
    let damage: DamagedChunk
    let session: LiveSession
    /// The session's revision before its bytes were read.
    let revision: Int64
}

/// The bytes of a partial upload as the body of another append.
///
/// Each chunk is read twice: first to compare it with its digest, then to pass it on. Damage does
/// not become a file of its own this way. The second read is hashed, too, because a failing disk
/// may return other bytes.
struct SourceBody: ByteBody {
    let bytes: SourceBytes
    /// Offset of the body's first byte in the partial upload.
    let start: Int64
    let context: EngineContext

    var announcedByteCount: Int64? { bytes.byteCount - start }

    func makeReader() async throws -> any ByteReader { Reader(self) }

    private final class Reader: ByteReader {
        private let body: SourceBody
        private var offset: Int64
        private var verifiedEnd: Int64
        /// Hash of the chunk's bytes passed on so far; nil for a chunk whose first bytes were
        /// copied before.
        private var passed: SHA256Hasher?

        init(_ body: SourceBody) {
            self.body = body
            (offset, verifiedEnd) = (body.start, body.start)
        }

        func fill(_ buffer: IOBuffer, limit: Int) async throws -> Bool {
            try Task.checkCancellation()
            let bytes = body.bytes
            guard offset < bytes.byteCount else { return false }
            if offset == verifiedEnd {
                let index = offset / bytes.chunkSize
                try await bytes.verify(Int(index), context: body.context)
                verifiedEnd = min((index + 1) * bytes.chunkSize, bytes.byteCount)
                passed = offset % bytes.chunkSize == 0 ? SHA256Hasher() : nil
            }
            let before = buffer.count
            try await bytes.source(buffer, offset, min(Int64(limit), verifiedEnd - offset))
            let count = buffer.count - before
            offset += Int64(count)
            try await check(buffer, count)
            return offset < bytes.byteCount
        }

        private func check(_ buffer: IOBuffer, _ count: Int) async throws {
            guard let hasher = passed else { return }
            let after = await body.context.pool.compute {
                var after = hasher
                after.update(UnsafeRawBufferPointer(rebasing: buffer.bytes.suffix(count)))
                return after
            }
            passed = after
            guard offset == verifiedEnd else { return }
            let index = Int((offset - 1) / body.bytes.chunkSize)
            guard after.digest() == body.bytes.digests[index] else {
                throw DamagedChunk(index: index, isCopied: true)
            }
        }
    }
}
