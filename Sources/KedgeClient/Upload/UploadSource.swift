internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// The file being uploaded: open, and watched for changes (R117, R118).
///
/// It is read where it lies, never copied or locked; a change of size, time or inode shows instead,
/// and then the upload begins anew with the new version. When only the time of change (ctime) differs,
/// the worker compares the bytes first.
final class UploadSource: Sendable {
    /// Chunks up to this size are read once into memory; larger ones are hashed first and then sent
    /// from the file, the second time mostly from the page cache.
    static let maxBufferedChunkSize: Int64 = 8 << 20

    let file: any OpenFile
    private let path: String
    private let identity: SourceIdentity
    private let files: any FileSystem
    private let pool: BlockingPool
    private let buffers: BufferPool
    private let isBuffered: Bool

    /// Opens the file and compares it with the record (R113).
    ///
    /// - Returns: The file, and what it is now: the same, or to be compared by its bytes.
    /// - Throws: `TransferError` with `FILE_MISSING`; ``SourceChanged``.
    static func open(
        _ upload: UploadTransfer, files: any FileSystem, pool: BlockingPool
    ) async throws -> (file: any OpenFile, identity: SourceIdentity) {
        let (file, identity) = try await openFile(upload.path, files: files, pool: pool)
        guard upload.identity.comparison(with: identity) != .changed else {
            throw SourceChanged(current: identity)
        }
        return (file, identity)
    }

    /// - Parameter chunkSize: The session's; decides whether chunks go through memory.
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

    /// Memory that one chunk in flight holds.
    static func bufferByteCount(chunkSize: Int64) -> Int64 {
        // A streamed chunk holds only the transport's own buffers.
        chunkSize <= maxBufferedChunkSize ? chunkSize : 1 << 20
    }

    /// Reads a chunk, or hashes it in place when it is large, and feeds the whole-file hash with it.
    ///
    /// - Throws: ``SourceChanged``; ``SourceTouched``; `TransferError` for a file that cannot be read.
    func prepare(
        _ index: Int, range: ByteRange, feeding wholeFile: PrefixHash
    ) async throws -> PreparedChunk {
        let (file, buffers) = (file, buffers)
        guard isBuffered else {
            let digest = try await reading { () throws(FileError) in
                try Self.hash(file, range: range, buffers: buffers)
            }
            wholeFile.follow(upTo: range.end)
            return PreparedChunk(index: index, range: range, digest: digest, content: .file(file))
        }
        let chunk = try await reading { () throws(FileError) in
            try Self.read(file, range: range, buffers: buffers)
        }
        let digest = try await wholeFile.advance(over: chunk, at: range.start)
        return PreparedChunk(index: index, range: range, digest: digest, content: .memory(chunk))
    }

    /// The SHA-256 of a part of the file.
    ///
    /// - Throws: ``SourceChanged``; ``SourceTouched``; `TransferError` for a file that cannot be read.
    func digest(of range: ByteRange) async throws -> SHA256Digest {
        let (file, buffers) = (file, buffers)
        return try await reading { () throws(FileError) in
            try Self.hash(file, range: range, buffers: buffers)
        }
    }

    /// Runs a look at the file that gives nil when it is shorter than known, and makes sure that it
    /// was still the same file afterwards.
    private func reading<Result: Sendable>(
        _ work: @escaping @Sendable () throws(FileError) -> Result?
    ) async throws -> Result {
        let (file, identity) = (file, identity)
        return try await pool.run { () throws -> Result in
            do {
                let result = try work()
                let now = SourceIdentity(try file.status())
                guard let result else { throw SourceChanged(current: now) }
                try identity.require(now)
                return result
            } catch let error as FileError {
                throw TransferError(error, operation: "read chunk", role: "file to upload")
            }
        }
    }

    /// Looks at the path again: also a file that was renamed over the open one counts as changed.
    ///
    /// - Throws: ``SourceChanged``; ``SourceTouched``; `TransferError` with `FILE_MISSING`.
    func verifyUnchanged() async throws {
        let (_, now) = try await Self.openFile(path, files: files, pool: pool)
        try identity.require(now)
    }

    /// The same where there is no point in comparing bytes: everything is sent anew in any case.
    ///
    /// - Throws: ``SourceChanged``, also for a file that was only touched; `TransferError`.
    func verifyUntouched() async throws {
        do {
            try await verifyUnchanged()
        } catch let touched as SourceTouched {
            throw SourceChanged(current: touched.current)
        }
    }

    /// The identity of the file at a path now.
    static func identity(
        of path: String, files: any FileSystem, pool: BlockingPool
    ) async throws -> SourceIdentity {
        try await openFile(path, files: files, pool: pool).1
    }

    /// Opens a regular file that a person named.
    ///
    /// - Throws: `TransferError` with `FILE_MISSING`, or `USAGE` when it is something else.
    static func openFile(
        _ path: String, files: any FileSystem, pool: BlockingPool
    ) async throws -> (any OpenFile, SourceIdentity) {
        try await pool.run {
            do {
                let file = try files.open(path, .readFollowingLinks)
                let status = try file.status()
                guard status.isRegularFile else {
                    throw TransferError(
                        .usage, operation: "open", resource: path,
                        explanation: "Only a regular file can be uploaded.")
                }
                return (file, SourceIdentity(status))
            } catch let error as FileError {
                throw TransferError(error, operation: "open", role: "file to upload")
            }
        }
    }

    /// Nil when the file ends inside the chunk.
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

    /// Nil when the file ends inside the chunk.
    private static func hash(
        _ file: any OpenFile, range: ByteRange, buffers: BufferPool
    ) throws(FileError) -> SHA256Digest? {
        let buffer = buffers.take()
        defer { buffers.give(buffer) }
        var hasher = SHA256Hasher()
        while hasher.byteCount < range.byteCount {
            buffer.removeAll()
            let limit = Int(clamping: range.byteCount - hasher.byteCount)
            try buffer.fillFree(limit: limit) { (free) throws(FileError) -> Int in
                try file.read(into: free, at: range.start + hasher.byteCount)
            }
            guard buffer.count > 0 else { return nil }
            hasher.update(buffer.bytes)
        }
        return hasher.digest()
    }
}

/// A chunk that is ready to be sent, as often as needed.
struct PreparedChunk: Sendable {
    enum Content: Sendable {
        case memory(ChunkBuffer)
        case file(any OpenFile)
    }

    let index: Int
    let range: ByteRange
    let digest: SHA256Digest
    let content: Content

    /// All bytes.
    var body: TransportBody { body(ByteRange(start: 0, end: range.byteCount)) }

    /// Some of the bytes.
    ///
    /// - Parameter part: Counted from the start of the chunk.
    func body(_ part: ByteRange) -> TransportBody {
        switch content {
        case .memory(let buffer):
            .source(BufferedBody(buffer: buffer, start: part.start, byteCount: part.byteCount))
        case .file(let file):
            .source(
                FileBody(file: file, start: range.start + part.start, byteCount: part.byteCount))
        }
    }
}

extension SourceIdentity {
    init(_ status: FileStatus) {
        self.init(
            byteCount: status.byteCount, modifiedNanoseconds: status.modifiedNanoseconds,
            changedNanoseconds: status.changedNanoseconds, inode: status.inode)
    }

    /// - Throws: ``SourceChanged``; ``SourceTouched``.
    func require(_ now: SourceIdentity) throws {
        switch comparison(with: now) {
        case .same: break
        case .touched: throw SourceTouched(current: now)
        case .changed: throw SourceChanged(current: now)
        }
    }
}
