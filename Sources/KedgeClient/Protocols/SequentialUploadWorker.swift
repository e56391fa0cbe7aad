internal import KedgeFiles
internal import KedgeModel

/// Runs one upload from any state to `completed`, in a protocol that appends bytes in order.
///
/// It requests the server's offset before it sends anything, so the same code starts, resumes and
/// recovers. The server's state is authoritative, and is recorded before the next request.
actor SequentialUploadWorker: UploadRun {
    /// Limit of rounds in which the server accepts all bytes and then reports that some are
    /// missing.
    private static let maxRoundCount = 3

    let context: WorkerContext
    let client: any SequentialUploadClient
    let file: any OpenFile
    var upload: UploadTransfer
    /// Running SHA-256 of the whole file.
    var wholeFile: FileHasher
    var source: UploadSource
    var capabilities = ServerCapabilities()
    /// Size of the next request's body, and the failures since the last progress.
    var sendState = SequentialSendState(
        bodySize: AdaptiveBodySize(capabilities: ServerCapabilities()))
    /// Highest offset that the server has acknowledged for this upload. Only bytes beyond it are
    /// progress.
    var furthest: Int64
    /// Offset acknowledged last. A lower one means that the server lost bytes.
    var acknowledged: Int64
    /// True while the latest state from the server is complete. If such an upload disappears, its
    /// consumer has taken it; it is not sent again.
    var isTakenWhole: Bool
    /// Attempts of the current chunk that are not in the record yet.
    var uncountedTries = 0
    /// True if the file may have been read, for a request or for the hash, since its last
    /// comparison with the record.
    var hasReadUnseen = false
    /// True if the ctime differs and the bytes are not compared yet.
    var isInDoubt: Bool
    /// Number of times the file was touched since the last progress.
    var touchCount = 0

    var size: Int64 { upload.identity.byteCount }
    /// Chunk of the furthest byte, to which the record attributes a request.
    var chunk: Int { upload.layout.index(ofByteAt: min(furthest, max(0, size - 1))) }

    /// Opens the file and compares it with the record.
    ///
    /// - Throws: `TransferError` with `FILE_MISSING`; ``RunInterruption/sourceChanged``.
    static func open(
        _ upload: UploadTransfer, context: WorkerContext
    ) async throws -> SequentialUploadWorker {
        let (file, identity) = try await UploadSource.open(
            upload, files: context.environment.files, pool: context.pool)
        return SequentialUploadWorker(upload, file: file, identity: identity, context: context)
    }

    private init(
        _ recorded: UploadTransfer, file: any OpenFile, identity: SourceIdentity,
        context: WorkerContext
    ) {
        let upload = recorded.with(identity)
        self.context = context
        self.upload = upload
        isInDoubt = recorded.identity != identity
        self.file = file
        client = context.api.client(upload.uploadProtocol)
        wholeFile = FileHasher(
            file: file, saved: upload.savedHash, environment: context.environment)
        source = Self.makeSource(upload, file: file, bodySize: sendState.bodySize, context: context)
        let offset = upload.status.lastGoodByteOffset
        (acknowledged, furthest) = (offset, offset)
        // tus completes an upload with its last byte, the IETF drafts with the last request.
        isTakenWhole =
            upload.uploadProtocol == .tus && upload.uploadURL != nil && offset > 0
            && offset == upload.identity.byteCount
    }

    static func makeSource(
        _ upload: UploadTransfer, file: any OpenFile, bodySize: AdaptiveBodySize,
        context: WorkerContext
    ) -> UploadSource {
        UploadSource(
            file: file, upload: upload, chunkSize: bodySize.maxByteCount,
            files: context.environment.files, pool: context.pool)
    }

    /// Runs the upload to its end.
    ///
    /// - Throws: ``RunInterruption``; ``RequestFailure`` or `TransferError` for failures to report;
    ///   `CancellationError`.
    func run() async throws {
        defer { wholeFile.stop() }
        let client = client
        adopt(try await context.coordinator.retrying { try await client.discover() })
        try await makeRounds()
    }

    func makeRound() async throws {
        let (address, state) = try await establishUpload()
        try await compareSource(upTo: state.offset)
        try await send(from: state, to: address)
    }

    private func send(from first: UploadState, to address: UploadAddress) async throws {
        var state = first
        for _ in 0..<Self.maxRoundCount {
            state = try await confirmed(try await sendRest(from: state, to: address), at: address)
            guard !state.isComplete else { return try await complete(state) }
        }
        throw RequestFailure(.sizeMismatch, operation: "complete upload", answer: state.answer)
    }

    /// Adopts the server's limits, which determine the sizes of bodies and buffers.
    func adopt(_ newer: ServerCapabilities?) {
        guard let newer else { return }
        let before = capabilities
        if let checksum = newer.checksum { capabilities.checksum = checksum }
        capabilities.update(with: newer)
        guard
            capabilities.minAppendSize != before.minAppendSize
                || capabilities.maxAppendSize != before.maxAppendSize
        else { return }
        sendState.bodySize.adopt(capabilities)
        source = Self.makeSource(upload, file: file, bodySize: sendState.bodySize, context: context)
    }
}

extension ServerAPI {
    /// Returns the client for a protocol other than the native one.
    func client(_ uploadProtocol: UploadProtocol) -> any SequentialUploadClient {
        let endpoint = UploadEndpoint(exchange: exchange)
        return switch uploadProtocol {
        case .tus: TusClient(endpoint: endpoint)
        case .resumableUpload: ResumableUploadClient(endpoint: endpoint)
        case .native: preconditionFailure("native uploads have chunks instead")
        }
    }
}
