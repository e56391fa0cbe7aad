internal import KedgeFiles
internal import KedgeModel
internal import Logging

/// Runs one upload in a dialect that takes bytes in their order, from wherever it stands to `completed`.
///
/// Before anything is sent the server is asked how far it has come, so that the same code starts, resumes
/// and recovers. Its word counts, whatever the record says; the record is written before the next request.
actor SequentialUploadWorker {
    /// Uploads that one run begins before it gives up: a server that forgets them would be fed for ever.
    private static let maxUploadCount = 5
    /// Times that the server may take all bytes and then say that it does not have them.
    private static let maxRoundCount = 3

    let context: WorkerContext
    let door: any UploadDoor
    let file: any OpenFile
    var upload: UploadTransfer
    /// Running SHA-256 of the whole file.
    var wholeFile: PrefixHash
    var source: UploadSource
    var offer = UploadOffer()
    var pieces = PieceSize(offer: UploadOffer())
    /// The furthest byte that the server ever acknowledged of this upload: only what lies beyond is progress.
    var furthest: Int64
    /// What it acknowledged last: less than that to say afterwards is losing bytes.
    var acknowledged: Int64
    /// True while the server's last word is that it has all bytes and wants no more. An upload that is gone
    /// then was taken away by whoever waited for it, and is not sent again.
    var isTakenWhole: Bool
    /// Pieces in a row that arrived with another checksum.
    var mismatchCount = 0
    /// Pieces in a row that were too large for something on the way.
    var refusalCount = 0
    /// Pieces in a row that something before the server answered as if they had broken off.
    var cutShortCount = 0
    /// Tries of the chunk that is under way which the record does not have yet.
    var uncountedTries = 0
    /// True when the file may have been read, for a request or for the hash, after it was last compared with
    /// the record.
    var hasReadUnseen = false
    /// True when the file's time of change differs, until its bytes were compared.
    var isInDoubt: Bool
    /// Times that the file was touched since the server acknowledged more.
    var touchCount = 0

    var size: Int64 { upload.identity.byteCount }
    /// Chunks are how the record counts; a piece belongs to the one in which the furthest byte lies.
    var chunk: Int { upload.layout.index(ofByteAt: min(furthest, max(0, size - 1))) }

    /// Opens the file and compares it with the record.
    ///
    /// - Throws: `TransferError` with `FILE_MISSING`; ``SourceChanged``.
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
        door = context.api.door(upload.dialect)
        wholeFile = PrefixHash(
            file: file, saved: upload.savedHash, environment: context.environment)
        source = Self.makeSource(upload, file: file, pieces: pieces, context: context)
        let offset = upload.status.lastGoodByteOffset
        (acknowledged, furthest) = (offset, offset)
        // In tus an upload is finished with its last byte; in the IETF drafts with the last request.
        isTakenWhole =
            upload.dialect == .tus && upload.uploadURL != nil && offset > 0
            && offset == upload.identity.byteCount
    }

    static func makeSource(
        _ upload: UploadTransfer, file: any OpenFile, pieces: PieceSize, context: WorkerContext
    ) -> UploadSource {
        UploadSource(
            file: file, upload: upload, chunkSize: pieces.maxByteCount,
            files: context.environment.files, pool: context.pool)
    }

    /// Runs to the end.
    ///
    /// - Throws: ``SourceChanged``; ``RequestFailure`` or `TransferError` for what must be shown;
    ///   ``OutOfPatience``; ``LeaseLost``; `CancellationError`.
    func run() async throws {
        defer { wholeFile.stop() }
        let door = door
        adopt(try await context.keeper.retrying { try await door.discover() })
        var troubleCount = 0
        while true {
            do {
                let (address, state) = try await establishUpload()
                try await compareSource(upTo: state.offset)
                return try await send(from: state, to: address)
            } catch let touched as SourceTouched {
                try doubt(touched)
            } catch let trouble as UploadTrouble {
                troubleCount += 1
                context.logger.notice(
                    "upload trouble",
                    metadata: [
                        "transfer": "\(context.lease.id)",
                        "code": "\(trouble.failure.code.rawValue)",
                    ])
                try await recover(from: trouble)
                guard troubleCount < Self.maxUploadCount else { throw trouble.failure }
            }
        }
    }

    private func send(from first: UploadState, to address: UploadAddress) async throws {
        var state = first
        for _ in 0..<Self.maxRoundCount {
            state = try await confirmed(try await sendRest(from: state, to: address), at: address)
            guard !state.isComplete else { return try await complete(state) }
        }
        throw RequestFailure(.sizeMismatch, operation: "complete upload", answer: state.answer)
    }

    /// Limits decide the sizes of pieces, and those what is read at once.
    func adopt(_ newer: UploadOffer?) {
        guard let newer else { return }
        let before = offer
        if let checksum = newer.checksum { offer.checksum = checksum }
        offer.update(with: newer)
        guard
            offer.minAppendSize != before.minAppendSize
                || offer.maxAppendSize != before.maxAppendSize
        else { return }
        pieces.adopt(offer)
        source = Self.makeSource(upload, file: file, pieces: pieces, context: context)
    }
}

/// The upload at the server cannot be gone on with; the transfer can.
struct UploadTrouble: Error {
    enum Remedy {
        /// It is gone: begin a new one.
        case newUpload
        /// The server has other bytes than we read: begin a new one, and trust nothing computed so far.
        case fromScratch
    }

    let remedy: Remedy
    /// What to report when there has been too much trouble.
    let failure: RequestFailure
}

extension ServerAPI {
    /// The way into a server in another dialect than the native one.
    func door(_ dialect: UploadDialect) -> any UploadDoor {
        let endpoint = UploadEndpoint(sender: sender)
        return switch dialect {
        case .tus: TusDoor(endpoint: endpoint)
        case .resumableUpload: ResumableUploadDoor(endpoint: endpoint)
        case .native: preconditionFailure("the native dialect has sessions instead")
        }
    }
}
