internal import KedgeFiles
internal import KedgeModel
internal import Logging

/// Runs one upload from wherever it stands to `completed`.
///
/// Session, chunks, finalize: each step first asks what is there already, so that the same code
/// starts, resumes and recovers. Every confirmed chunk is recorded at once; stopping the task at any
/// point loses no confirmed byte.
actor UploadWorker {
    /// New sessions that one run begins before it gives up: a server that forgets them faster than
    /// bytes arrive would be fed for ever.
    private static let maxSessionCount = 5
    /// Times that finalize may report missing chunks in a row.
    private static let maxFinalizeRounds = 8

    let context: WorkerContext
    let file: any OpenFile
    var upload: UploadTransfer
    /// Running SHA-256 of the whole file.
    var wholeFile: PrefixHash
    var source: UploadSource
    /// Chunks on the server, by its own word.
    var confirmed: ChunkSet
    /// Bytes of unfinished chunks that the server keeps, from the start of each chunk.
    var partials: [Int: Int64] = [:]
    var window: ConcurrencyWindow
    /// What the last chunk that got through says of the next one.
    var pieces: PieceSize
    /// True when the server takes bodies that end before their chunk does.
    var takesPartialBodies = false
    /// True while the server's session takes chunks.
    var isSessionOpen = true
    /// True when the file's time of change differs, until its bytes were compared.
    var isInDoubt: Bool
    /// False while the record has another time of change than the file.
    var isIdentityRecorded: Bool
    /// Times that the file was touched since a chunk was confirmed last.
    var touchCount = 0
    /// Chunks that the server has and that nothing on this side proves to be those of the file.
    var unproven: Set<Int> = []
    /// What was read of chunks that are not confirmed yet, in this run.
    var sentDigests: [Int: SHA256Digest] = [:]

    /// Opens the file and compares it with the record.
    ///
    /// - Throws: `TransferError` with `FILE_MISSING`; ``SourceChanged``.
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
        self.wholeFile = PrefixHash(
            file: file, saved: upload.savedHash, environment: context.environment)
        self.confirmed = upload.uploadedChunks
        self.source = Self.makeSource(upload, file: file, context: context)
        self.window = Self.makeWindow(upload, context)
        self.pieces = PieceSize(chunkSize: upload.chunkSize)
    }

    /// Runs to the end.
    ///
    /// - Throws: ``SourceChanged``; ``RequestFailure`` or `TransferError` for what must be shown;
    ///   ``OutOfPatience``; ``LeaseLost``; `CancellationError`.
    func run() async throws {
        defer { wholeFile.stop() }
        var troubleCount = 0
        while true {
            do {
                try await establishSession()
                try await compareSource()
                try await sendAndFinalize()
                return
            } catch let touched as SourceTouched {
                try doubt(touched)
            } catch let trouble as SessionTrouble {
                troubleCount += 1
                guard troubleCount <= Self.maxSessionCount else { throw trouble.failure }
                context.logger.notice(
                    "session trouble",
                    metadata: [
                        "transfer": "\(context.lease.id)",
                        "code": "\(trouble.failure.code.rawValue)",
                    ])
                try await recover(from: trouble)
            }
        }
    }

    private func sendAndFinalize() async throws {
        for _ in 0..<Self.maxFinalizeRounds {
            try await sendMissingChunks()
            if try await finalize() { return }
        }
        throw RequestFailure(.missingChunks, operation: "finalize")
    }

    /// Chunk size and limits come from the session, so what depends on them is made anew with it.
    func adoptSessionShape() {
        source = Self.makeSource(upload, file: file, context: context)
        window = Self.makeWindow(upload, context)
        pieces = PieceSize(chunkSize: upload.chunkSize)
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

/// The session cannot simply be gone on with; the upload can.
struct SessionTrouble: Error {
    enum Remedy {
        /// Ask the server what it has.
        case reconcile
        /// Begin a new session, which may take over the chunks of an expired one.
        case newSession(adopt: SessionID?)
        /// The server has other bytes than we read: begin a new session and trust nothing that was
        /// computed so far, once.
        case fromScratch
    }

    let remedy: Remedy
    /// What to report when there has been too much trouble.
    let failure: RequestFailure
}

extension UploadTransfer {
    /// The same transfer of a file that may have been touched: then its hash may not be used.
    func with(_ identity: SourceIdentity) -> UploadTransfer {
        guard identity != self.identity else { return self }
        var upload = self
        upload.identity = identity
        upload.fileHash = nil
        return upload
    }
}
