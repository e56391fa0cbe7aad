public import KedgeModel
public import KedgeTransport

/// Details of a transfer for support, without secrets: no token, no query of a URL, no directory of
/// the local file.
public struct TransferDiagnosis: Sendable, Codable, Hashable {
    /// Version of this format.
    public var version = 1
    /// Id of the transfer, the same in every process of this user.
    public var transferId: TransferID
    /// Direction of the transfer.
    public var direction: TransferDirection
    /// Name of the file, without its directory.
    public var name: String
    /// Base URL of the server, without credentials.
    public var server: String
    /// State of the transfer.
    public var state: TransferState
    /// Reason of the pause.
    public var pauseReason: PauseReason?
    /// Error that stopped the transfer, or for which it waits.
    public var errorCode: ErrorCode?
    /// Message for ``errorCode``.
    public var errorMessage: String?
    /// Cause of the last attempt's failure, if it got no answer.
    public var cause: ConnectionCause?
    /// Host of that attempt.
    public var host: String?
    /// Port of that attempt.
    public var port: Int?
    /// Consecutive attempts without progress.
    public var attempt: Int?
    /// Time of the next attempt.
    public var nextAttemptAt: Timestamp?
    /// Status code of the server's last answer.
    public var lastServerStatus: Int?
    /// Request id of that answer, as in the server's log.
    public var lastRequestId: String?
    /// End of the furthest confirmed byte.
    public var lastGoodByteOffset: Int64
    /// Number of times the whole file had an unexpected SHA-256.
    public var integrityFailureCount: Int
    /// Digest mismatches: the whole file first, then chunks.
    public var mismatches: [DigestMismatch]
    /// Kind of verification, once done.
    public var verification: Verification?
    /// Size of the file in bytes, once known.
    public var size: Int64?
    /// Chunk size in bytes.
    public var chunkSize: Int64
    /// Number of chunks, once the size is known.
    public var totalChunks: Int?
    /// Number of confirmed chunks.
    public var confirmedChunks: Int
    /// Unconfirmed chunks, as inclusive ranges `[first, last]`.
    public var missingRanges: [[Int]]
    /// Attempts of each chunk that needed more than one.
    public var repeatedChunks: [Int: Int]
    /// Attempts of all chunks together.
    public var totalAttempts: Int
    /// The upload session, once there is one.
    public var sessionId: SessionID?
    /// Protocol of the upload, if not native. Named as in the JSON form.
    public var dialect: UploadProtocol?
    /// URL of the upload in that protocol, without credentials and query.
    public var uploadURL: String?
    /// Expiry of the session or upload, unless more bytes arrive.
    public var sessionExpiresAt: Timestamp?
    /// The file on the server.
    public var remoteFileId: FileID?
    /// URL of a download, without credentials and query.
    public var remoteURL: String?
    /// Entity tag of the version being downloaded.
    public var etag: String?
    /// SHA-256 that a download must have.
    public var expectedSha256: SHA256Digest?
    /// Computed SHA-256 of the whole file.
    public var computedSha256: SHA256Digest?
    /// Number of bytes covered by the whole-file hash.
    public var hashedBytes: Int64
    /// Number of bytes that were read again for the hash of the whole file, by the run that
    /// computed it: none, or nearly none, when the chunks came in order. Nil without that hash.
    public var readBackBytes: Int64?
    /// Number of times the file changed on the server during this download.
    public var remoteChangeCount: Int?
    /// Time of enqueueing.
    public var createdAt: Timestamp
    /// Time of the record's last change.
    public var updatedAt: Timestamp

    /// - Parameter isInterrupted: True if the record states that bytes move, but the process has
    ///   ended.
    init(
        _ record: TransferRecord, attempts: [Int: Int], mismatches: [DigestMismatch],
        isInterrupted: Bool
    ) {
        let (status, failed) = (record.status, record.status.failedAttempt)
        let (upload, download) = (record.uploadRecord, record.downloadRecord)
        transferId = status.id
        direction = record.direction
        name = record.name
        server = URLText.redacted(status.serverURL)
        state = isInterrupted ? .queued : status.state
        pauseReason = status.pauseReason
        errorCode = status.lastErrorCode
        errorMessage = status.lastErrorMessage
        cause = failed?.cause
        host = failed?.host
        port = failed?.port
        attempt = failed?.attempt
        nextAttemptAt = failed?.nextAttemptAt
        lastServerStatus = status.lastServerStatus
        lastRequestId = status.lastRequestID
        lastGoodByteOffset = status.lastGoodByteOffset
        integrityFailureCount = status.integrityFailureCount
        self.mismatches = mismatches
        verification = status.verification
        size = record.byteCount
        chunkSize = record.chunkSize
        totalChunks = record.chunkCount
        confirmedChunks = record.confirmedChunks.count
        missingRanges = record.confirmedChunks.missingRanges(of: record.chunkCount ?? 0)
            .map { [$0.lowerBound, $0.upperBound] }
        repeatedChunks = attempts.filter { $0.value > 1 }
        totalAttempts = attempts.values.reduce(0, +)
        sessionId = record.sessionID
        dialect = upload?.uploadProtocol == .native ? nil : upload?.uploadProtocol
        uploadURL = upload?.uploadURL.map { URLText.redacted($0) }
        sessionExpiresAt = upload?.expiresAt
        remoteFileId = record.remoteFileID
        remoteURL = download?.reference.urlText.map { URLText.redacted($0) }
        // A date is not an entity tag.
        etag = download?.validator.flatMap { $0.text.hasSuffix("\"") ? $0.text : nil }
        expectedSha256 = download?.expectedHash
        computedSha256 = record.fileHash
        hashedBytes = record.hashedByteCount
        readBackBytes = record.fileHash == nil ? nil : status.readBackByteCount
        remoteChangeCount = download?.remoteChangeCount
        createdAt = status.createdAt
        updatedAt = status.updatedAt
    }
}
