internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel
internal import KedgeTransport

/// File being uploaded, open and checked for changes.
///
/// The file is read in place, never copied or locked. If its size, modification time or inode
/// changes, the upload restarts with the new version. If only its ctime changes, the worker
/// compares the bytes first.
final class UploadSource: Sendable {
    /// Chunks up to this size are read once into memory. Larger ones are read twice, for the hash
    /// and for sending; the second read is mostly served by the page cache.
    static let maxBufferedChunkSize: Int64 = 8 << 20

    let file: any OpenFile
    private let path: String
    private let identity: SourceIdentity
    private let files: any FileSystem
    private let pool: BlockingPool
    private let buffers: BufferPool
    private let isBuffered: Bool

    /// Opens the file and compares it with the record.
    ///
    /// - Returns: The file and its current identity, of which only the ctime may differ.
    /// - Throws: `TransferError` with `FILE_MISSING`; ``RunInterruption/sourceChanged``.
    static func open(
        _ upload: UploadTransfer, files: any FileSystem, pool: BlockingPool
    ) async throws -> (file: any OpenFile, identity: SourceIdentity) {
        let (file, identity) = try await openFile(upload.path, files: files, pool: pool)
        guard upload.identity.comparison(with: identity) != .changed else {
            throw RunInterruption.sourceChanged(identity)
        }
        return (file, identity)
    }

    /// - Parameter chunkSize: The session's chunk size; decides whether chunks are buffered.
    init(
        file: any OpenFile, upload: UploadTransfer, chunkSize: Int64, files: any FileSystem,
        pool: BlockingPool
    ) {
        self.file = file
        self.path = upload.path
        self.identity = upload.identity
        self.files = files
        self.pool = pool
        self.isBuffered = chunkSize <= Self.maxBufferedChunkSize
        self.buffers = BufferPool(
            bufferCapacity: Int(min(chunkSize, Self.maxBufferedChunkSize)), keptCount: 4)
    }

    /// Returns the memory that one chunk in flight needs.
    static func bufferByteCount(chunkSize: Int64) -> Int64 {
        // A streamed chunk uses only the transport's own buffers.
        chunkSize <= maxBufferedChunkSize ? chunkSize : 1 << 20
    }

    /// Reads a chunk, or hashes a large one in place, and adds it to the whole-file hash.
    ///
    /// - Throws: ``RunInterruption/sourceChanged``; ``SourceTouched``; `TransferError` if the file
    ///   cannot be read.
    func prepare(
        _ index: Int, range: ByteRange, feeding wholeFile: FileHasher
    ) async throws -> PreparedChunk {
        let (file, buffers) = (file, buffers)
        guard isBuffered else {
            let digest = try await reading { () throws(FileError) in
                try Self.hash(file, range: range, buffers: buffers)
            }
            wholeFile.readBack(upTo: range.end)
            return PreparedChunk(index: index, range: range, digest: digest, content: .file(file))
        }
        let chunk = try await reading { () throws(FileError) in
            try Self.read(file, range: range, buffers: buffers)
        }
        let digest = try await wholeFile.advance(over: chunk, at: range.start)
        return PreparedChunk(index: index, range: range, digest: digest, content: .memory(chunk))
    }

    /// Returns the SHA-256 of a part of the file.
    ///
    /// - Throws: ``RunInterruption/sourceChanged``; ``SourceTouched``; `TransferError` if the file
    ///   cannot be read.
    func digest(of range: ByteRange) async throws -> SHA256Digest {
        let (file, buffers) = (file, buffers)
        return try await reading { () throws(FileError) in
            try Self.hash(file, range: range, buffers: buffers)
        }
    }

    /// Runs a read that returns nil if the file is too short, and then checks that the file is
    /// unchanged.
    private func reading<Result: Sendable>(
        _ work: @escaping @Sendable () throws(FileError) -> Result?
    ) async throws -> Result {
        let (file, identity) = (file, identity)
        return try await pool.run { () throws -> Result in
            do {
                let result = try work()
                let now = SourceIdentity(try file.status())
                guard let result else { throw RunInterruption.sourceChanged(now) }
                try identity.require(now)
                return result
            } catch let error as FileError {
                throw TransferError(error, operation: "read chunk", role: .source)
            }
        }
    }

    /// Checks the file at the path again. A file renamed over the open one counts as changed.
    ///
    /// - Throws: ``RunInterruption/sourceChanged``; ``SourceTouched``; `TransferError` with
    ///   `FILE_MISSING`.
    func verifyUnchanged() async throws {
        let (_, now) = try await Self.openFile(path, files: files, pool: pool)
        try identity.require(now)
    }

    /// Checks the file where all bytes are sent again anyway, so comparing them is pointless.
    ///
    /// - Throws: ``RunInterruption/sourceChanged``, also for a file that was only touched;
    ///   `TransferError`.
    func verifyUntouched() async throws {
        do {
            try await verifyUnchanged()
        } catch let touched as SourceTouched {
            throw RunInterruption.sourceChanged(touched.current)
        }
    }

    /// Returns the current identity of the file at a path.
    static func identity(
        of path: String, files: any FileSystem, pool: BlockingPool, role: LocalFileRole = .source
    ) async throws -> SourceIdentity {
        try await openFile(path, files: files, pool: pool, role: role).1
    }

    /// Opens a regular file that the user named.
    ///
    /// - Parameter role: The file's role, which errors name.
    /// - Throws: `TransferError` with `FILE_MISSING`, or `USAGE` if it is not a regular file.
    static func openFile(
        _ path: String, files: any FileSystem, pool: BlockingPool, role: LocalFileRole = .source
    ) async throws -> (any OpenFile, SourceIdentity) {
        try await pool.run {
            do {
                let file = try files.open(path, .readFollowingLinks)
                let status = try file.status()
                guard status.isRegularFile else {
                    throw TransferError(
                        .usage, operation: "open", resource: path,
                        explanation: role == .source
                            ? "Only a regular file can be uploaded." : "It is not a regular file.")
                }
                return (file, SourceIdentity(status))
            } catch let error as FileError {
                throw TransferError(error, operation: "open", role: role)
            }
        }
    }

    /// Reads a chunk into memory; nil if the file ends inside it.
    private static func read(
        _ file: any OpenFile, range: ByteRange, buffers: BufferPool
    ) throws(FileError) -> ChunkBuffer? {
        let buffer = buffers.take()
        try buffer.fillFree(limit: Int(range.byteCount)) { (free) throws(FileError) -> Int in
            try file.read(into: free, at: range.start)
        }
        guard Int64(buffer.count) == range.byteCount else { return nil }
        return ChunkBuffer(buffer, from: buffers)
    }

    /// Hashes a range of the file; nil if the file ends inside it.
    private static func hash(
        _ file: any OpenFile, range: ByteRange, buffers: BufferPool
    ) throws(FileError) -> SHA256Digest? {
        let buffer = buffers.take()
        defer { buffers.give(buffer) }
        var hasher = SHA256Hasher()
        try buffer.withMemory { (memory) throws(FileError) in
            try hasher.update(upTo: range.byteCount, through: memory) {
                (free, hashedByteCount) throws(FileError) -> Int in
                try file.read(into: free, at: range.start + hashedByteCount)
            }
        }
        return hasher.byteCount == range.byteCount ? hasher.digest() : nil
    }
}

/// A chunk that is ready to be sent, and to be sent again.
struct PreparedChunk: Sendable {
    enum Content: Sendable {
        case memory(ChunkBuffer)
        case file(any OpenFile)
    }

    let index: Int
    let range: ByteRange
    let digest: SHA256Digest
    let content: Content

    /// The whole chunk as a request body.
    var body: TransportBody { body(ByteRange(start: 0, end: range.byteCount)) }

    /// Returns a part of the chunk as a request body.
    ///
    /// - Parameter part: Counted from the start of the chunk.
    func body(_ part: ByteRange) -> TransportBody {
        switch content {
        case .memory(let buffer):
            .source(BufferedBody(buffer: buffer, start: part.start, byteCount: part.byteCount))
        case .file(let file):
            .source(
                FileRangeBody(
                    file: file, start: range.start + part.start, byteCount: part.byteCount))
        }
    }
}

extension SourceIdentity {
    init(_ status: FileStatus) {
        self.init(
            byteCount: status.byteCount, modifiedNanoseconds: status.modifiedNanoseconds,
            changedNanoseconds: status.changedNanoseconds, inode: status.inode)
    }

    /// - Throws: ``RunInterruption/sourceChanged``; ``SourceTouched``.
    func require(_ now: SourceIdentity) throws {
        switch comparison(with: now) {
        case .same: break
        case .touched: throw SourceTouched(current: now)
        case .changed: throw RunInterruption.sourceChanged(now)
        }
    }
}
