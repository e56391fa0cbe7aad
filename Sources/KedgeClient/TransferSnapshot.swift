public import KedgeModel

/// A transfer as it stands at one moment, for display.
public struct TransferSnapshot: Sendable, Hashable {
    /// Names the transfer in every process of this user.
    public let id: TransferID
    /// Whether bytes go to the server or come from it.
    public let direction: TransferDirection
    /// Base URL of the server that it began with, and goes on with.
    public let serverURL: String
    /// Display name: that of the file.
    public let name: String
    /// Local path: what is uploaded, or where the download goes.
    public let path: String
    /// Where it stands.
    public let state: TransferState
    /// Why it is paused; set exactly while it is (R106).
    public let pauseReason: PauseReason?
    /// Bytes of confirmed chunks, and of a download the durable ones of unfinished chunks: never falls over
    /// a pause or a restart of the process (R105).
    public let bytesTransferred: Int64
    /// Size of the file; nil while a download does not know it.
    public let totalBytes: Int64?
    /// Bytes in each chunk of an upload but the last: the wish until the session is created, then
    /// the server's value. Nil for downloads, and in other dialects than the native one.
    public let chunkSize: Int64?
    /// Current rate; nil when nothing moves, or another process runs the transfer.
    public let bytesPerSecond: Double?
    /// At the current rate; nil when that or the size is unknown.
    public let timeRemaining: Duration?
    /// Tries of chunks so far, first tries included.
    public let attempts: Int
    /// What stopped the transfer, or what it waits for.
    public let errorCode: ErrorCode?
    /// The try behind ``errorCode``: why and where it failed, and when the next one is.
    public let failedAttempt: FailedAttempt?
    /// A sentence for a person: what goes on, or what happened and what to do (R104, R107).
    public let message: String
    /// True while the transfer will go on by itself.
    public let isWaiting: Bool
    /// How the server is spoken to; nil for a download.
    public let dialect: UploadDialect?
    /// The upload session, once there is one. Whoever knows it, and has the file, can go on with the upload
    /// (``UploadOptions/sessionID``).
    public let sessionID: SessionID?
    /// Where the upload is, once it was begun in another dialect than the native one. Whoever knows it may
    /// be able to read and change it.
    public let uploadURL: String?
    /// The file on the server: known from the start for a download of one, from finalize for an upload; for
    /// one in another dialect only where a Kedge server tells it.
    public let remoteFileID: FileID?
    /// SHA-256 of the whole file, once computed.
    public let sha256: SHA256Digest?
    /// How the result was checked, once it was.
    public let verification: Verification?
    /// How often the whole file had another SHA-256 than expected.
    public let integrityFailureCount: Int
    /// True when that keeps happening: offer to begin anew, which forgets what was transferred (R110).
    public let offersRetryFromScratch: Bool
    /// The transfer that took over because the file changed (R100).
    public let replacedBy: TransferID?
    /// The transfer of an older version that this one took over from.
    public let replaces: TransferID?
    /// When it was enqueued.
    public let createdAt: Timestamp
    /// When its record last changed.
    public let updatedAt: Timestamp
}

extension TransferSnapshot {
    /// The snapshot of a record.
    /// - Parameter isInterrupted: True when the record says that bytes move, and the process that moved them is
    ///   gone.
    init(
        _ record: TransferRecord, attempts: Int, bytesPerSecond: Double?,
        isInterrupted: Bool = false
    ) {
        let status = record.status
        id = status.id
        serverURL = status.serverURL
        direction = record.direction
        // The process that moved bytes has ended: it waits to be run again, whatever the record says.
        state = isInterrupted ? .queued : status.state
        pauseReason = status.pauseReason
        errorCode = status.lastErrorCode
        failedAttempt = status.failedAttempt
        isWaiting = state == .queued
        verification = status.verification
        integrityFailureCount = status.integrityFailureCount
        offersRetryFromScratch = status.integrityFailureCount > 1 && status.state != .completed
        createdAt = status.createdAt
        updatedAt = status.updatedAt
        self.attempts = attempts
        message =
            isInterrupted
            ? "The process that moved it was ended; run it again to go on." : Self.message(record)
        let done = record.confirmedByteCount
        let total: Int64?
        switch record {
        case .upload(let upload):
            name = upload.fileName
            path = upload.path
            total = upload.identity.byteCount
            chunkSize = upload.dialect == .native ? upload.chunkSize : nil
            dialect = upload.dialect
            sessionID = upload.sessionID ?? upload.givenSessionID
            uploadURL = upload.uploadURL
            remoteFileID = upload.remoteFileID
            sha256 = upload.fileHash
            replacedBy = upload.replacedBy
            replaces = upload.replaces
        case .download(let download):
            name = LocalPath.name(of: download.destinationPath)
            path = download.destinationPath
            total = download.expectedSize
            chunkSize = nil
            dialect = nil
            sessionID = nil
            uploadURL = nil
            if case .file(let id) = download.reference {
                remoteFileID = id
            } else {
                remoteFileID = nil
            }
            sha256 = download.fileHash
            replacedBy = nil
            replaces = nil
        }
        bytesTransferred = status.state == .completed ? total ?? done : done
        totalBytes = total
        self.bytesPerSecond = bytesPerSecond
        if let bytesPerSecond, bytesPerSecond > 0, let total, !status.state.isFinal {
            // Capped: a size from the server may be any number, and a duration has an end.
            timeRemaining = .seconds(min(Double(total - done) / bytesPerSecond, 1e9))
        } else {
            timeRemaining = nil
        }
    }

    /// What stands before the message of a failure: some are sentences, others go on with one.
    private static func separator(_ message: String) -> String {
        message.first.map { $0.isLowercase || $0.isNumber || $0 == "[" } == true ? ": " : ". "
    }

    private static func message(_ record: TransferRecord) -> String {
        let status = record.status
        let isUpload = record.direction == .upload
        switch status.state {
        case .queued:
            // It waits for the next run alone.
            if let end = status.failedAttempt, end.nextAttemptAt == nil,
                let message = status.lastErrorMessage
            {
                return message
            }
            let waiting = isUpload ? "Waiting to upload" : "Waiting to download"
            return status.lastErrorMessage.map { "\(waiting)\(Self.separator($0))\($0)" } ?? waiting
        case .uploading, .downloading:
            return status.lastErrorMessage ?? (isUpload ? "Uploading" : "Downloading")
        case .paused:
            switch status.pauseReason {
            case .shutdown: return "Paused because kedge stopped; it goes on with the next run."
            case .constraint: return "Paused until the network allows it."
            case .user, nil: return "Paused; resume to go on."
            }
        case .failed:
            let cause = status.lastErrorMessage ?? "It failed."
            return [cause, FailureAdvice.text(for: record)].compactMap { $0 }.joined(separator: " ")
        case .completed:
            guard status.verification == .unverified else { return "Completed and verified." }
            return isUpload
                ? "Completed; unverified, because the server told no SHA-256."
                : "Completed; unverified, because no SHA-256 was known."
        case .canceled:
            return status.lastErrorCode == .fileChanged
                ? status.lastErrorMessage ?? "Canceled." : "Canceled."
        }
    }
}

extension TransferRecord {
    /// Bytes that are confirmed: whole chunks of an upload, durable bytes of a download.
    var confirmedByteCount: Int64 {
        switch self {
        case .upload(let upload):
            // In other dialects the server names a byte, which may be inside a chunk.
            upload.dialect == .native
                ? upload.layout.byteCount(of: upload.uploadedChunks)
                : upload.status.lastGoodByteOffset
        case .download(let download):
            (download.layout?.byteCount(of: download.downloadedChunks) ?? 0)
                + download.partialByteCount
        }
    }
}
