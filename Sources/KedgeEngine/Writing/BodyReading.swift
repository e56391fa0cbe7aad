internal import KedgeFiles
internal import KedgeModel

extension ByteReader {
    /// Reads and drops bytes that are stored already. A client that did not know of a partial sends
    /// them again, and the partial must not shrink.
    ///
    /// - Throws: `LENGTH_MISMATCH` when the body ends early.
    func skip(_ byteCount: Int64, through buffers: BufferPool) async throws {
        let buffer = buffers.take()
        defer { buffers.give(buffer) }
        var rest = byteCount
        while rest > 0 {
            buffer.removeAll()
            let hasMore = try await fill(buffer, limit: Int(min(rest, Int64(buffer.capacity))))
            rest -= Int64(buffer.count)
            guard hasMore || rest == 0 else {
                throw EngineError(.lengthMismatch, "The body ended early.")
            }
        }
    }

    /// Returns true when the body has no further byte.
    func isAtEnd(through buffers: BufferPool) async throws -> Bool {
        let buffer = buffers.take()
        defer { buffers.give(buffer) }
        return try await !fill(buffer, limit: 1) && buffer.count == 0
    }

    /// Checks that a body has ended with its chunk. Only an open-ended body can continue. One that
    /// breaks off here counts, because its bytes are complete.
    ///
    /// - Throws: `LENGTH_MISMATCH`.
    func requireEnd(of body: some ByteBody, through buffers: BufferPool) async throws {
        guard body.announcedByteCount == nil else { return }
        let isOver: Bool
        do {
            isOver = try await isAtEnd(through: buffers)
        } catch {
            return
        }
        guard isOver else {
            throw EngineError(.lengthMismatch, "The body continues after the end of the chunk.")
        }
    }
}
