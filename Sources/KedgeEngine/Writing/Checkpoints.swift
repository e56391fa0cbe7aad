internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// Makes the first bytes of a chunk durable while the rest is still coming, so that a killed process
/// costs the client seconds of sending and not the whole chunk.
///
/// Works beside the pass: the body is read on during a sync. Only bytes whose write had returned
/// before the sync began are recorded.
actor Checkpoints {
    private let live: LiveSession
    private let parts: EngineParts
    private let index: Int
    private let chunkByteCount: Int64
    private let declaredDigest: SHA256Digest?
    private let staging: any StagingArea
    private let isRival: Bool
    /// The hash over what is written of the chunk; nil before this pass wrote anything.
    private var written: SHA256Hasher?
    /// Bytes of the chunk that were recorded, or tried to be: a store that refuses is asked again
    /// only for more.
    private var attemptedByteCount: Int64
    private var isSaving = false

    init(
        live: LiveSession, parts: EngineParts, index: Int, chunk: ByteRange,
        resuming partial: PartialRecord?, declaredDigest: SHA256Digest?, staging: any StagingArea,
        isRival: Bool = false
    ) {
        self.live = live
        self.parts = parts
        self.index = index
        chunkByteCount = chunk.byteCount
        self.declaredDigest = declaredDigest
        self.staging = staging
        self.isRival = isRival
        attemptedByteCount = partial?.byteCount ?? 0
    }

    private var newByteCount: Int64 { (written?.byteCount ?? 0) - attemptedByteCount }

    /// Records what is written from time to time until the task is cancelled; a checkpoint under way
    /// is seen to its end. It fires also while the body stalls.
    func run() async {
        let settings = parts.configuration
        while true {
            do {
                try await parts.timer.sleep(for: settings.checkpointInterval)
            } catch {
                // Cancelled: the pass is over.
                return
            }
            if newByteCount >= settings.minCheckpointByteCount { await save() }
        }
    }

    /// Told after each write. Returns after a sync when so much is new that time alone would let a
    /// fast link lose too much.
    func wrote(_ hash: SHA256Hasher) async {
        written = hash
        if newByteCount >= parts.configuration.checkpointByteCount { await save() }
    }

    private func save() async {
        // A whole chunk is about to be committed, and is no partial.
        guard !isSaving, let written, written.byteCount < chunkByteCount else { return }
        isSaving = true
        defer { isSaving = false }
        attemptedByteCount = written.byteCount
        await live.keepPartial(
            written, index: index, declaredDigest: declaredDigest, staging: staging,
            isRival: isRival)
    }
}
