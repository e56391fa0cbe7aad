internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// Writes the bytes of one response into the temporary file, hashing them on the way.
///
/// Pieces are gathered into a megabyte before the disk is asked; memory is one buffer however large
/// the body. The buffer goes back with the writer, so that nothing is written from one that has another
/// owner.
struct BodyWriter: ~Copyable {
    private let file: any OpenFile
    private let pool: BlockingPool
    private let buffers: BufferPool
    private let buffer: IOBuffer
    private let rate: RateMeter
    private let start: Int64
    private let turn: FileHashTurn?
    /// What was written, from `start` on.
    private(set) var part: ChunkPart

    /// - Parameters:
    ///   - start: Where in the file the hashed bytes begin.
    ///   - part: What was hashed already, when a body goes on where another one ended.
    ///   - turn: Lets the file's hash go along with a chunk that comes from its start.
    init(
        file: any OpenFile, start: Int64, part: ChunkPart = ChunkPart(),
        turn: FileHashTurn? = nil, buffers: BufferPool, context: WorkerContext
    ) {
        self.file = file
        self.start = start
        self.part = part
        self.turn = turn
        self.pool = context.pool
        self.rate = context.rate
        self.buffers = buffers
        self.buffer = buffers.take()
    }

    deinit { buffers.give(buffer) }

    /// Number of bytes in the file, from `start` on.
    var writtenByteCount: Int64 { part.byteCount }

    /// The same with those that are gathered and not written yet.
    var arrivedByteCount: Int64 { part.byteCount + Int64(buffer.count) }

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
        if part.byteCount == 0, let fileHash = await turn?.wait() { part.join(fileHash) }
        let (file, buffer, before) = (file, buffer, part)
        let offset = start + before.byteCount
        do {
            part = try await pool.run {
                var part = before
                part.update(buffer.bytes)
                if part.file == nil {
                    // It is read back for the file's hash.
                    try file.write(buffer.bytes, at: offset)
                } else {
                    try file.writeUncached(buffer.bytes, at: offset)
                }
                return part
            }
        } catch {
            throw TransferError.reading(error, operation: "write", role: "download's folder")
        }
        rate.add(Int64(buffer.count))
        buffer.removeAll()
    }
}
