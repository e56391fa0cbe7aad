internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// Fills a buffer's free part with bytes from the offset, at most `byteCount`.
typealias StoredByteSource =
    @Sendable (_ buffer: IOBuffer, _ offset: Int64, _ byteCount: Int64) async throws -> Void

/// Returns the SHA-256 of a range of stored bytes.
func digest(
    of range: Range<Int64>, context: EngineContext, _ source: StoredByteSource
) async throws -> SHA256Digest {
    let hasher = try await context.hash(from: SHA256Hasher(), upTo: Int64(range.count)) {
        buffer, hashedByteCount, byteCount in
        try Task.checkCancellation()
        try await source(buffer, range.lowerBound + hashedByteCount, byteCount)
    }
    return hasher.digest()
}
