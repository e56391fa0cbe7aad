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
    var hasher = SHA256Hasher()
    let buffer = context.buffers.take()
    defer { context.buffers.give(buffer) }
    while hasher.byteCount < Int64(range.count) {
        try Task.checkCancellation()
        buffer.removeAll()
        let offset = range.lowerBound + hasher.byteCount
        try await source(buffer, offset, range.upperBound - offset)
        let before = hasher
        hasher = await context.pool.compute {
            var after = before
            after.update(buffer.bytes)
            return after
        }
    }
    return hasher.digest()
}
