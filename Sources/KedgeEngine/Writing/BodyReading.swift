internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// Reads and drops bytes of a body that are stored already. A client that did not know of a partial
/// sends them again, and the partial must not shrink.
///
/// - Throws: `LENGTH_MISMATCH` when the body ends early.
func skip(_ byteCount: Int64, of reader: any ByteReader, context: EngineContext) async throws {
    let buffer = context.buffers.take()
    defer { context.buffers.give(buffer) }
    var rest = byteCount
    while rest > 0 {
        buffer.removeAll()
        let hasMore = try await reader.fill(buffer, limit: Int(min(rest, Int64(buffer.capacity))))
        rest -= Int64(buffer.count)
        guard hasMore || rest == 0 else {
            throw EngineError(.lengthMismatch, "The body ended early.")
        }
    }
}

/// Reads and hashes a body until the hash covers `byteCount` bytes or the body ends.
func readAndHash(
    _ hasher: SHA256Hasher, upTo byteCount: Int64, of reader: any ByteReader, context: EngineContext
) async throws -> (SHA256Hasher, hasMore: Bool) {
    let buffer = context.buffers.take()
    defer { context.buffers.give(buffer) }
    var hasher = hasher
    var hasMore = true
    while hasMore, hasher.byteCount < byteCount {
        buffer.removeAll()
        let rest = byteCount - hasher.byteCount
        hasMore = try await reader.fill(buffer, limit: Int(min(rest, Int64(buffer.capacity))))
        hasher = await context.hash(buffer, after: hasher)
    }
    return (hasher, hasMore)
}

/// Returns true when the body has no further byte.
func isAtEnd(_ reader: any ByteReader, context: EngineContext) async throws -> Bool {
    let buffer = context.buffers.take()
    defer { context.buffers.give(buffer) }
    return try await !reader.fill(buffer, limit: 1) && buffer.count == 0
}
