internal import KedgeFiles
internal import KedgeModel

/// Runs one upload from any state to `completed`.
///
/// Session, chunks, finalize: each step first asks for the existing state, so the same code starts,
/// resumes and recovers. Every confirmed chunk is recorded at once. Stopping the task loses no
/// confirmed byte.
actor UploadWorker: UploadRun {
    /// Limit of consecutive finalize requests that report missing chunks.
    private static let maxFinalizeRounds = 8

    let context: WorkerContext
    let file: any OpenFile
    var upload: UploadTransfer
    /// Running SHA-256 of the whole file.
    var wholeFile: FileHasher
    var source: UploadSource
    /// Chunks that the server has, as it reported.
    var confirmed: ChunkSet
    /// Bytes that the server has of unfinished chunks, from the start of each chunk.
    var partials: [Int: Int64] = [:]
    var window: ConcurrencyWindow
    /// Request size for the next chunk, learned from the last delivered one.
    var bodySize: AdaptiveBodySize
    /// True if the server accepts bodies that end before their chunk.
    var takesPartialBodies = false
    /// True while the session accepts chunks.
    var isSessionOpen = true
    /// True if the ctime differs and the bytes are not compared yet.
    var isInDoubt: Bool
    /// False while the ctime in the record differs from the file's.
    var isIdentityRecorded: Bool
    /// Number of times the file was touched since the last confirmed chunk.
    var touchCount = 0
    /// Chunks on the server that are not proven to be those of this file.
    var unproven: Set<Int> = []
    /// Files on the server that may have the bytes of this one; empty once they were compared.
    var storedFiles: [StoredFile] = []
    /// True once the file was compared with stored files in this run, whatever the result.
    var hasComparedStoredFiles = false
    /// Digest of the stored file that proved to be this one; nil once a session was finalized with
    /// it.
    var storedDigest: SHA256Digest?
    /// Number of sessions that were finalized with that digest while they were empty.
    var storedFinalizeCount = 0
    /// Digests of unconfirmed chunks that were read in this run.
    var sentDigests: [Int: SHA256Digest] = [:]

    /// Opens the file and compares it with the record.
    ///
    /// - Throws: `TransferError` with `FILE_MISSING`; ``RunInterruption/sourceChanged``.
    static func open(
        _ upload: UploadTransfer, context: WorkerContext
    ) async throws -> UploadWorker {
        let (file, identity) = try await UploadSource.open(
            upload, files: context.environment.files, pool: context.pool)
        return UploadWorker(upload, file: file, identity: identity, context: context)
    }

    private init(
        _ recorded: UploadTransfer, file: any OpenFile, identity: SourceIdentity,
        context: WorkerContext
    ) {
        let upload = recorded.with(identity)
        self.context = context
        self.upload = upload
        self.isInDoubt = recorded.identity != identity
        self.isIdentityRecorded = recorded.identity == identity
        self.file = file
        self.wholeFile = FileHasher(
            file: file, saved: upload.savedHash, environment: context.environment)
        self.confirmed = upload.uploadedChunks
        self.source = Self.makeSource(upload, file: file, context: context)
        self.window = Self.makeWindow(upload, context)
        self.bodySize = AdaptiveBodySize(chunkSize: upload.chunkSize)
    }

    /// Runs the upload to its end.
    ///
    /// - Throws: ``RunInterruption``; ``RequestFailure`` or `TransferError` for failures to report;
    ///   `CancellationError`.
    func run() async throws {
        defer { wholeFile.stop() }
        try await makeRounds()
    }

    /// The interface for requests on the session. Its link outlives a token, and a link that only
    /// creates uploads does not permit them.
    var api: ServerAPI {
        upload.sessionLink.map { context.api.authorized(byLink: $0) } ?? context.api
    }

    func makeRound() async throws {
        do {
            try await makeRoundByLink()
        } catch let failure as RequestFailure where isSessionLinkRefused(failure) {
            // The user's token still counts.
            try await context.store.discardSessionLink(of: context.lease)
            upload.sessionLink = nil
            throw UploadTrouble(remedy: .reconcile, failure: failure)
        }
    }

    /// Whether the session has a link that the server refuses, and which the upload can do without.
    private func isSessionLinkRefused(_ failure: RequestFailure) -> Bool {
        failure.isByLink && upload.sessionLink != nil && upload.link == nil
            && upload.givenSessionID == nil
            && [.linkInvalid, .linkExpired, .unauthenticated, .forbidden].contains(failure.code)
    }

    private func makeRoundByLink() async throws {
        try await establishSession()
        try await compareSource()
        if try await completeWithStoredFile() { return }
        for _ in 0..<Self.maxFinalizeRounds {
            try await sendMissingChunks()
            if try await finalize() { return }
        }
        throw RequestFailure(.missingChunks, operation: "finalize")
    }

    /// Recreates everything that depends on the session's chunk size and limits.
    func adoptSessionShape() {
        source = Self.makeSource(upload, file: file, context: context)
        window = Self.makeWindow(upload, context)
        bodySize = AdaptiveBodySize(chunkSize: upload.chunkSize)
    }

    private static func makeSource(
        _ upload: UploadTransfer, file: any OpenFile, context: WorkerContext
    ) -> UploadSource {
        UploadSource(
            file: file, upload: upload, chunkSize: upload.chunkSize,
            files: context.environment.files, pool: context.pool)
    }

    private static func makeWindow(
        _ upload: UploadTransfer, _ context: WorkerContext
    ) -> ConcurrencyWindow {
        ConcurrencyWindow(
            wish: context.configuration.connections, serverLimit: upload.maxConcurrentChunks,
            bufferByteCount: UploadSource.bufferByteCount(chunkSize: upload.chunkSize),
            budgetByteCount: WorkerContext.bufferBudgetByteCount)
    }
}

extension UploadTransfer {
    /// Returns the same transfer with a new identity of the file. If it differs, the recorded hash
    /// is discarded.
    func with(_ identity: SourceIdentity) -> UploadTransfer {
        guard identity != self.identity else { return self }
        var upload = self
        upload.identity = identity
        upload.fileHash = nil
        return upload
    }
}
