internal import KedgeFiles
internal import KedgeHash
package import KedgeModel

/// A native upload of a chunk or a part of one, as parsed from its request.
package struct ChunkPut: Sendable {
    package var index: Int
    /// The parsed `Content-Range` header field.
    package var contentRange: ContentRange
    /// SHA-256 of the whole chunk, also when the body carries only a part of it.
    package var digest: SHA256Digest
    /// True when the digest was given for the body alone; then the body must be the whole chunk.
    package var isBodyDigest: Bool

    package init(
        index: Int, contentRange: ContentRange, digest: SHA256Digest, isBodyDigest: Bool = false
    ) {
        self.index = index
        self.contentRange = contentRange
        self.digest = digest
        self.isBodyDigest = isBodyDigest
    }
}

/// The outcome of a chunk upload.
package enum ChunkPutOutcome: Sendable {
    /// The chunk was committed by this request.
    case created(ChunkReceipt)
    /// The chunk was committed already with the same digest; the body was not needed.
    case alreadyReceived(ChunkReceipt)
    /// The body ended before the chunk. Its bytes are durable, and the next body continues after
    /// them.
    case partial(PartialChunk)
}

extension ChunkPut {
    /// Checks the upload against the session's layout.
    ///
    /// - Returns: The ranges of the chunk and of the body in the file.
    /// - Throws: `CHUNK_OUT_OF_BOUNDS`, `RANGE_MISMATCH`, `CHUNK_HASH_REQUIRED`, `LENGTH_MISMATCH`.
    func validate(
        _ layout: ChunkLayout, bodyByteCount: Int64?
    ) throws -> (chunk: ByteRange, body: ByteRange) {
        guard let chunk = layout.range(ofChunk: index) else {
            throw EngineError(
                .chunkOutOfBounds, "The chunk index is not below \(layout.chunkCount ?? 0).")
        }
        guard let range = contentRange.range, contentRange.total == layout.fileSize,
            range.start >= chunk.start, range.start < chunk.end, range.end <= chunk.end
        else {
            let expected = ContentRange(range: chunk, total: layout.fileSize)
            throw EngineError(
                .rangeMismatch, "The Content-Range of chunk \(index) is \"\(expected)\".")
        }
        if isBodyDigest, range != chunk {
            throw EngineError(
                .chunkHashRequired, "A part of a chunk needs X-Chunk-Hash of the whole chunk.")
        }
        if let bodyByteCount, bodyByteCount != range.byteCount {
            throw EngineError(
                .lengthMismatch,
                "Content-Range names \(range.byteCount) bytes, the body has \(bodyByteCount).")
        }
        return (chunk, range)
    }
}
