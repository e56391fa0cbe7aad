internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// Writes the bytes of one response into the temporary file, hashing them on the way.
///
/// Pieces are gathered into a megabyte before the disk is asked; memory is one buffer however large
/// the body.
struct BodyWriter {
    private let file: any OpenFile
    private let pool: BlockingPool
    private let buffers: BufferPool
    private let buffer: IOBuffer
    private let rate: RateMeter
    private let start: Int64
    /// SHA-256 of what was written, from `start` on.
    private(set) var hasher: SHA256Hasher

    /// - Parameters:
    ///   - start: Where in the file the hashed bytes begin.
    ///   - hasher: What was hashed already, when a body goes on where another one ended.
    init(
        file: any OpenFile, start: Int64, hasher: SHA256Hasher, buffers: BufferPool,
        context: WorkerContext
    ) {
        self.file = file
        self.start = start
        self.hasher = hasher
        self.pool = context.pool
        self.rate = context.rate
        self.buffers = buffers
        self.buffer = buffers.take()
    }

    /// Number of bytes in the file, from `start` on.
    var writtenByteCount: Int64 { hasher.byteCount }

    /// Takes a piece; writes when enough has gathered.
    mutating func append(_ piece: [UInt8]) async throws {
        var taken = 0
        while taken < piece.count {
            let rest = piece[taken...]
            taken += rest.withUnsafeBytes { buffer.append($0) }
            if buffer.freeCount == 0 { try await flush() }
        }
    }

    /// Writes what has gathered. Not durable: the caller syncs.
    mutating func flush() async throws {
        guard buffer.count > 0 else { return }
        let (file, buffer, before) = (file, buffer, hasher)
        let offset = start + before.byteCount
        do {
            hasher = try await pool.run {
                var hasher = before
                hasher.update(buffer.bytes)
                try file.write(buffer.bytes, at: offset)
                return hasher
            }
        } catch {
            throw TransferError.reading(error, operation: "write", role: "download's folder")
        }
        rate.add(Int64(buffer.count))
        buffer.removeAll()
    }

    /// Gives the buffer back; the writer is not used afterwards.
    func finish() { buffers.give(buffer) }
}
