internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// Writes the bytes of one response into the temporary file, hashing them on the way.
///
/// Buffers up to 1 MiB before each write, however large the body. The buffer returns to the pool
/// only in `deinit`, so that no write reads from a buffer with another owner.
struct BodyWriter: ~Copyable {
    private let file: any OpenFile
    private let pool: BlockingPool
    private let buffers: BufferPool
    private let buffer: IOBuffer
    private let rate: RateMeter
    private let start: Int64
    private let fileHashStep: FileHashStep?
    private let began: ContinuousClock.Instant
    /// Hashes of the bytes written so far, from `start` on.
    private(set) var progress: ChunkProgress

    /// - Parameters:
    ///   - start: Offset in the file of the first hashed byte.
    ///   - progress: Hashes of the bytes already present, when this body continues an earlier one.
    ///   - fileHashStep: The step of a chunk that is received from its first byte, in the file's
    ///     hash.
    ///   - began: The start of the chunk's fetch, of which this body may be a later try.
    init(
        file: any OpenFile, start: Int64, progress: ChunkProgress = ChunkProgress(),
        fileHashStep: FileHashStep? = nil, began: ContinuousClock.Instant = .now,
        buffers: BufferPool, context: WorkerContext
    ) {
        self.file = file
        self.start = start
        self.progress = progress
        self.fileHashStep = fileHashStep
        self.began = began
        self.pool = context.pool
        self.rate = context.rate
        self.buffers = buffers
        self.buffer = buffers.take()
    }

    deinit { buffers.give(buffer) }

    /// Number of bytes in the file, from `start` on.
    var writtenByteCount: Int64 { progress.byteCount }

    /// Number of bytes received from `start` on, including those still in the buffer.
    var arrivedByteCount: Int64 { progress.byteCount + Int64(buffer.count) }

    /// Adds bytes to the buffer and writes whenever it is full.
    mutating func append(_ bytes: [UInt8]) async throws {
        var taken = 0
        while taken < bytes.count {
            let rest = bytes[taken...]
            taken += rest.withUnsafeBytes { buffer.append($0) }
            if buffer.freeCount == 0 { try await flush() }
        }
    }

    /// Writes the buffered bytes. Not durable: the caller syncs.
    mutating func flush() async throws {
        guard buffer.count > 0 else { return }
        if progress.byteCount == 0,
            let fileHash = await fileHashStep?.makeHasher(
                first: buffer.count, age: ContinuousClock.now - began)
        {
            progress.join(fileHash)
        }
        let (file, buffer, before) = (file, buffer, progress)
        let offset = start + before.byteCount
        do {
            progress = try await pool.run {
                var progress = before
                progress.update(buffer.bytes)
                if progress.file == nil {
                    // The file's hash reads these bytes back.
                    try file.write(buffer.bytes, at: offset)
                } else {
                    try file.writeUncached(buffer.bytes, at: offset)
                }
                return progress
            }
        } catch {
            throw TransferError.reading(error, operation: "write", role: .downloadFolder)
        }
        if progress.file != nil { fileHashStep?.noteHashed(progress.byteCount) }
        rate.add(Int64(buffer.count))
        buffer.removeAll()
    }
}
