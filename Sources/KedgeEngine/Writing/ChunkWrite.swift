internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// One write of received bytes into one chunk. Every front end uses it: a native upload once for a
/// request, an append once for each chunk.
///
/// The order of the steps makes acknowledged bytes durable. A process or a machine that stops
/// between two of them loses only bytes that were not acknowledged:
///
/// 1. Receive: bytes are written to the staging area while they are hashed (``receive(_:)``).
/// 2. Verify: the caller compares the chunk's ``digest`` with the declared one.
/// 3. Sync: the staging area makes the bytes durable.
/// 4. Row: the chunk's row, or its partial's, is committed (``commit()``, ``commitPartial()``).
/// 5. Acknowledge: only then does the caller return.
///
/// ``Promoter`` continues with the rename at step 6.
struct ChunkWrite {
    let index: Int
    private let session: LiveSession
    private let writer: ActiveWriter
    /// Whether received bytes count when the body breaks off.
    private let isKept: Bool
    private let isRival: Bool
    /// The digest that a partial of the chunk declares for the whole chunk.
    private let declaredDigest: SHA256Digest?
    /// The commit of the chunk before this one in an append.
    private let previous: ChunkCommit?
    private var pass: ChunkPass

    /// - Parameters:
    ///   - end: Offset after the last byte that the body may bring.
    ///   - partial: The recorded bytes of the chunk that the body continues.
    ///   - isKept: Whether received bytes count when the body breaks off.
    ///   - isRival: Whether the bytes lie beside the chunk's partial, in an area of their own.
    ///   - hashesFile: Whether the file's hash may be computed with this chunk. Requires a chunk
    ///     that is received from its first byte.
    ///   - appendHash: The checksums of an append's whole body.
    ///   - previous: The commit of the chunk before in an append. Bytes of this chunk are recorded
    ///     only after it: the rows of an append never have a gap.
    init(
        _ index: Int, of session: LiveSession, writer: ActiveWriter, chunk: ByteRange, end: Int64,
        resuming partial: PartialRecord?, declaredDigest: SHA256Digest?,
        staging: any StagingArea, isKept: Bool = true, isRival: Bool = false,
        hashesFile: Bool = false, appendHash: AppendHash? = nil, after previous: ChunkCommit? = nil
    ) throws {
        self.index = index
        self.session = session
        self.writer = writer
        self.isKept = isKept
        self.isRival = isRival
        self.declaredDigest = declaredDigest
        self.previous = previous
        let checkpoints =
            isKept
            ? Checkpoints(
                session: session, context: session.context, index: index, chunk: chunk,
                resuming: partial, declaredDigest: declaredDigest, staging: staging,
                isRival: isRival, isReady: { await previous?.failure() == nil }) : nil
        pass = try ChunkPass(
            chunk: ByteRange(start: chunk.start, end: end), resuming: partial, staging: staging,
            context: session.context,
            fileHashStep: hashesFile ? FileHashStep(session, start: chunk.start) : nil,
            appendHash: appendHash, checkpoints: checkpoints, writer: writer)
    }

    var staging: any StagingArea { pass.staging }
    /// Offset after the last written byte.
    var offset: Int64 { pass.offset }
    /// Number of the chunk's bytes up to ``offset``.
    var byteCount: Int64 { pass.verified.byteCount }
    /// Number of bytes that the body may still bring.
    var missingByteCount: Int64 { pass.end - pass.offset }
    /// The digest of the chunk's bytes up to ``offset``.
    var digest: SHA256Digest { pass.verified.digest() }
    /// The checksums of the append's whole body, across chunks.
    var appendHash: AppendHash? { pass.appendHash }
    /// The chunk as it will be recorded once its bytes are durable.
    var chunk: CommittedChunk {
        CommittedChunk(index: index, byteCount: byteCount, digest: digest)
    }

    /// Writes bytes of the body until the chunk is full or the body ends.
    ///
    /// - Returns: False when the body ended first.
    /// - Throws: The reason why the body broke off, after its bytes were saved.
    mutating func receive(_ reader: any ByteReader) async throws -> Bool {
        switch await pass.run(reader) {
        case .filled: return true
        case .bodyEnded: return false
        case .interrupted(let error):
            await keep()
            throw writer.interruption?.error ?? error
        }
    }

    /// Writes bytes of a body of known length.
    ///
    /// - Throws: `LENGTH_MISMATCH` when the body ends early, after its bytes were saved.
    mutating func receiveAll(_ reader: any ByteReader) async throws {
        guard try await !receive(reader) else { return }
        await keep()
        throw EngineError(.lengthMismatch, "The body ended \(missingByteCount) bytes early.")
    }

    /// Saves bytes that arrived before the body broke off, if they count. If that fails, the client
    /// only sends some bytes again, so the failure does not hide the reason.
    private func keep() async {
        guard isKept, await previous?.failure() == nil else { return }
        try? await savePartial()
    }

    /// Lets the next chunk continue the file's hash before this one is durable.
    func proposeStep() {
        guard let (before, after) = pass.hashStep else { return }
        session.prefix.fileHashing.propose(after, from: before)
    }

    /// Makes the whole chunk durable: bytes, then row.
    func commit() async throws {
        try await session.commitDurably(chunk, staging: staging, step: pass.hashStep)
        await session.followPrefix()
    }

    /// Makes the bytes of a body durable that ended before its chunk: bytes, then the row of the
    /// partial.
    ///
    /// - Throws: The error that keeps them from counting; `RANGE_MISMATCH` when only a whole chunk
    ///   can count.
    func commitPartial() async throws {
        try await session.commitPartial(
            pass.verified, index: index, declaredDigest: declaredDigest, staging: staging,
            isRival: isRival)
    }

    /// Makes the bytes received so far durable, as far as they exceed the recorded ones.
    func savePartial() async throws {
        try await session.savePartial(
            pass.verified, index: index, declaredDigest: declaredDigest, staging: staging,
            isRival: isRival)
    }
}
