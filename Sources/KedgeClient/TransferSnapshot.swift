public import KedgeModel

/// State of a transfer at one moment, for display.
public struct TransferSnapshot: Sendable, Hashable {
    /// Id of the transfer, the same in every process of this user.
    public let id: TransferID
    /// Direction of the transfer.
    public let direction: TransferDirection
    /// Base URL of the transfer's server, which never changes.
    public let serverURL: String
    /// Name of the file, for display.
    public let name: String
    /// Local path of the uploaded file or of the download's destination.
    public let path: String
    /// State of the transfer.
    public let state: TransferState
    /// Reason of the pause; nil unless paused.
    public let pauseReason: PauseReason?
    /// Confirmed bytes: complete chunks, the offset that a server acknowledged in other protocols,
    /// and for downloads also the durable bytes of unfinished chunks. Never decreases over a pause
    /// or a restart of the process.
    public let bytesTransferred: Int64
    /// Size of the file; nil until a download knows it.
    public let totalBytes: Int64?
    /// Bytes in each chunk of an upload but the last: the preference until the session is created,
    /// then the server's value. Nil for downloads and for protocols other than
    /// ``UploadProtocol/native``.
    public let chunkSize: Int64?
    /// Current rate; nil if nothing moves or another process runs the transfer.
    public let bytesPerSecond: Double?
    /// Remaining time at the current rate; nil if the rate or the size is unknown.
    public let timeRemaining: Duration?
    /// Number of bytes that were compared by SHA-256 with a file that the server has; nil unless an
    /// upload of this process is being compared. If all are the same, nothing is sent.
    public let comparedBytes: Int64?
    /// Whether the upload was completed without sending a byte, because the server had the bytes.
    public let usedStoredBytes: Bool
    /// Attempts of chunks so far, including first attempts.
    public let attempts: Int
    /// Error that stopped the transfer, or for which it waits.
    public let errorCode: ErrorCode?
    /// Attempt behind ``errorCode``, with its cause, its host and the time of the next attempt.
    public let failedAttempt: FailedAttempt?
    /// Sentence for the user: the current activity, or the failure and what to do about it.
    public let message: String
    /// Whether the transfer will continue by itself.
    public let isWaiting: Bool
    /// Protocol of the upload; nil for a download.
    public let uploadProtocol: UploadProtocol?
    /// The earlier name of ``uploadProtocol``.
    public var dialect: UploadProtocol? { uploadProtocol }
    /// Upload session, once there is one. Any client with this id and the file can continue the
    /// upload (``UploadOptions/sessionID``).
    public let sessionID: SessionID?
    /// URL of an upload in a protocol other than ``UploadProtocol/native``, once created. Treat it
    /// as a secret: it may be enough to read and change the upload.
    public let uploadURL: String?
    /// File on the server. Known from the start for a download by id, and from finalize for an
    /// upload. In other protocols only a Kedge server reports it.
    public let remoteFileID: FileID?
    /// SHA-256 of the whole file, once computed.
    public let sha256: SHA256Digest?
    /// Kind of verification, once done.
    public let verification: Verification?
    /// Number of times the whole file had an unexpected SHA-256.
    public let integrityFailureCount: Int
    /// Whether to offer a retry from scratch, which discards all progress. True after repeated
    /// integrity failures.
    public let offersRetryFromScratch: Bool
    /// Transfer that replaced this one because the file changed.
    public let replacedBy: TransferID?
    /// Transfer of an older version of the file that this one replaced.
    public let replaces: TransferID?
    /// Time of enqueueing.
    public let createdAt: Timestamp
    /// Time of the record's last change.
    public let updatedAt: Timestamp
}

extension TransferSnapshot {
    /// Creates the snapshot of a record.
    ///
    /// - Parameter isInterrupted: True if the record states that bytes move, but the process has
    ///   ended.
    init(
        _ record: TransferRecord, attempts: Int, bytesPerSecond: Double?,
        comparedByteCount: Int64? = nil, isInterrupted: Bool = false
    ) {
        let (status, upload) = (record.status, record.uploadRecord)
        id = status.id
        serverURL = status.serverURL
        direction = record.direction
        // The process has ended: the transfer waits for another run, whatever the record states.
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
        comparedBytes = comparedByteCount
        usedStoredBytes = record.uploadRecord?.usedStoredBytes == true
        message =
            isInterrupted
            ? "The process that ran it ended; run it again to resume."
            : Self.message(record, isComparing: comparedByteCount != nil)
        name = record.name
        path = record.localPath
        totalBytes = record.byteCount
        bytesTransferred =
            (status.state == .completed ? record.byteCount : nil) ?? record.confirmedByteCount
        chunkSize = upload.flatMap { $0.uploadProtocol == .native ? $0.chunkSize : nil }
        uploadProtocol = upload?.uploadProtocol
        sessionID = record.sessionID
        uploadURL = upload?.uploadURL
        remoteFileID = record.remoteFileID
        sha256 = record.fileHash
        replacedBy = upload?.replacedBy
        replaces = upload?.replaces
        self.bytesPerSecond = bytesPerSecond
        timeRemaining = bytesPerSecond.flatMap { Self.timeRemaining(of: record, at: $0) }
    }

    private static func timeRemaining(
        of record: TransferRecord, at bytesPerSecond: Double
    ) -> Duration? {
        guard bytesPerSecond > 0, let total = record.byteCount, !record.status.state.isFinal else {
            return nil
        }
        // Capped: the size comes from the server and may exceed the range of a duration.
        let seconds = Double(total - record.confirmedByteCount) / bytesPerSecond
        return .seconds(min(seconds, 1e9))
    }

    /// Returns the punctuation before a failure's message, which may be a sentence or continue one.
    private static func separator(_ message: String) -> String {
        message.first.map { $0.isLowercase || $0.isNumber || $0 == "[" } == true ? ": " : ". "
    }

    private static func message(_ record: TransferRecord, isComparing: Bool) -> String {
        let status = record.status
        let isUpload = record.direction == .upload
        switch status.state {
        case .queued:
            // No retry is scheduled: only another run continues it.
            if let end = status.failedAttempt, end.nextAttemptAt == nil,
                let message = status.lastErrorMessage
            {
                return message
            }
            let waiting = isUpload ? "Waiting to upload" : "Waiting to download"
            return status.lastErrorMessage.map { "\(waiting)\(Self.separator($0))\($0)" } ?? waiting
        case .uploading, .downloading:
            if let message = status.lastErrorMessage { return message }
            if isComparing { return "Comparing with the server" }
            return isUpload ? "Uploading" : "Downloading"
        case .paused:
            switch status.pauseReason {
            case .shutdown: return "Paused; the next run resumes it."
            case .constraint: return "Paused until the network allows it."
            case .signInNeeded:
                let cause = status.lastErrorMessage ?? "The server requires a token."
                return "\(cause) Progress is kept; resume to continue."
            case .user, nil: return "Paused; resume to continue."
            }
        case .failed:
            let cause = status.lastErrorMessage ?? "It failed."
            return [cause, FailureAdvice.text(for: record)].compactMap { $0 }.joined(separator: " ")
        case .completed:
            guard status.verification == .unverified else { return "Completed and verified." }
            return isUpload
                ? "Completed; unverified, because the server reported no SHA-256."
                : "Completed; unverified, because no SHA-256 was known."
        case .canceled:
            return status.lastErrorCode == .fileChanged
                ? status.lastErrorMessage ?? "Canceled." : "Canceled."
        }
    }
}
