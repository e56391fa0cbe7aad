internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// Makes the first bytes of a chunk durable while the rest is still arriving. A killed process then
/// costs the client seconds of sending and not the whole chunk.
///
/// Runs beside the pass, which keeps reading the body during a sync. Only bytes whose write had
/// returned before the sync began are recorded.
actor Checkpoints {
    private let session: LiveSession
    private let context: EngineContext
    private let index: Int
    private let chunkByteCount: Int64
    private let declaredDigest: SHA256Digest?
    private let staging: any StagingArea
    private let isRival: Bool
    /// Waits until a partial may be recorded; false if it may not.
    private let isReady: @Sendable () async -> Bool
    /// The hash of the chunk's written bytes; nil before this pass wrote any.
    private var written: SHA256Hasher?
    /// Bytes of the chunk that were recorded, or that the store refused. It is asked again only for
    /// more bytes.
    private var attemptedByteCount: Int64
    private var isSaving = false

    init(
        session: LiveSession, context: EngineContext, index: Int, chunk: ByteRange,
        resuming partial: PartialRecord?, declaredDigest: SHA256Digest?, staging: any StagingArea,
        isRival: Bool = false, isReady: @escaping @Sendable () async -> Bool = { true }
    ) {
        self.session = session
        self.context = context
        self.index = index
        chunkByteCount = chunk.byteCount
        self.declaredDigest = declaredDigest
        self.staging = staging
        self.isRival = isRival
        self.isReady = isReady
        attemptedByteCount = partial?.byteCount ?? 0
    }

    private var newByteCount: Int64 { (written?.byteCount ?? 0) - attemptedByteCount }

    /// Records the written bytes at intervals until the task is cancelled, also while the body
    /// stalls. A checkpoint under way is completed.
    func run() async {
        let settings = context.configuration
        while true {
            do {
                try await context.timer.sleep(for: settings.checkpointInterval)
            } catch {
                // Cancelled: the pass is over.
                return
            }
            if newByteCount >= settings.minCheckpointByteCount { await save() }
        }
    }

    /// Called after each write. When many bytes are new, saves them at once and returns afterwards:
    /// within one interval a fast link would lose too much.
    func wrote(_ hash: SHA256Hasher) async {
        written = hash
        if newByteCount >= context.configuration.checkpointByteCount { await save() }
    }

    private func save() async {
        // A whole chunk is about to be committed and needs no partial.
        guard !isSaving, let written, written.byteCount < chunkByteCount else { return }
        isSaving = true
        defer { isSaving = false }
        guard await isReady() else { return }
        attemptedByteCount = written.byteCount
        await session.keepPartial(
            written, index: index, declaredDigest: declaredDigest, staging: staging,
            isRival: isRival)
    }
}
