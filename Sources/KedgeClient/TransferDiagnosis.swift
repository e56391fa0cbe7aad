public import KedgeModel

/// Everything support wants to know about a transfer, without secrets: no token, no query of a URL,
/// no directory of the local file (R120, R139–R142).
public struct TransferDiagnosis: Sendable, Codable, Hashable {
    /// Version of this form.
    public var version = 1
    /// Names the transfer in every process of this user.
    public var transferId: TransferID
    /// Which way the bytes go.
    public var direction: TransferDirection
    /// Name of the file, without its directory.
    public var name: String
    /// Base URL of the server, without credentials.
    public var server: String
    /// Where it stands.
    public var state: TransferState
    /// Why it is paused.
    public var pauseReason: PauseReason?
    /// What stopped it, or what it waits for.
    public var errorCode: ErrorCode?
    /// The same in words.
    public var errorMessage: String?
    /// Why the last try got no answer.
    public var cause: ConnectionCause?
    /// Host that it asked.
    public var host: String?
    /// Port that it asked.
    public var port: Int?
    /// Tries in a row that brought nothing.
    public var attempt: Int?
    /// When the next one is.
    public var nextAttemptAt: Timestamp?
    /// Status of the last answer of the server.
    public var lastServerStatus: Int?
    /// Request id of that answer, to be found in the server's log.
    public var lastRequestId: String?
    /// End of the furthest confirmed byte.
    public var lastGoodByteOffset: Int64
    /// How often the whole file had another SHA-256 than expected.
    public var integrityFailureCount: Int
    /// What did not have its SHA-256, with both digests: the whole file first, then chunks.
    public var mismatches: [DigestMismatch]
    /// How the result was checked, once it was.
    public var verification: Verification?
    /// Size of the file in bytes, once known.
    public var size: Int64?
    /// Size of a chunk in bytes.
    public var chunkSize: Int64
    /// Number of chunks, once the size is known.
    public var totalChunks: Int?
    /// Number of confirmed chunks.
    public var confirmedChunks: Int
    /// Chunks that are not confirmed, as inclusive runs `[first, last]`.
    public var missingRanges: [[Int]]
    /// Tries of each chunk that needed more than one.
    public var repeatedChunks: [Int: Int]
    /// Tries of all chunks together.
    public var totalAttempts: Int
    /// The upload session, once there is one.
    public var sessionId: SessionID?
    /// How the server is spoken to, when that is not the native way.
    public var dialect: UploadDialect?
    /// Where the upload is in that dialect, without credentials and query.
    public var uploadURL: String?
    /// When the session or upload expires unless bytes arrive.
    public var sessionExpiresAt: Timestamp?
    /// The file on the server.
    public var remoteFileId: FileID?
    /// URL of a download, without credentials and query.
    public var remoteURL: String?
    /// Entity tag of the version being downloaded.
    public var etag: String?
    /// SHA-256 that a download must have.
    public var expectedSha256: SHA256Digest?
    /// SHA-256 that was computed of the whole file.
    public var computedSha256: SHA256Digest?
    /// How far the running whole-file hash is.
    public var hashedBytes: Int64
    /// How often the file changed on the server during this download.
    public var remoteChangeCount: Int?
    /// When the transfer was enqueued.
    public var createdAt: Timestamp
    /// When its record last changed.
    public var updatedAt: Timestamp

    /// - Parameter isInterrupted: True when the record says that bytes move, and the process that moved them is
    ///   gone.
    init(
        _ record: TransferRecord, attempts: [Int: Int], mismatches: [DigestMismatch],
        isInterrupted: Bool
    ) {
        self.mismatches = mismatches
        let status = record.status
        transferId = status.id
        direction = record.direction
        server = URLText.redacted(status.serverURL)
        state = isInterrupted ? .queued : status.state
        pauseReason = status.pauseReason
        errorCode = status.lastErrorCode
        errorMessage = status.lastErrorMessage
        cause = status.failedAttempt?.cause
        host = status.failedAttempt?.host
        port = status.failedAttempt?.port
        attempt = status.failedAttempt?.attempt
        nextAttemptAt = status.failedAttempt?.nextAttemptAt
        lastServerStatus = status.lastServerStatus
        lastRequestId = status.lastRequestID
        lastGoodByteOffset = status.lastGoodByteOffset
        integrityFailureCount = status.integrityFailureCount
        verification = status.verification
        createdAt = status.createdAt
        updatedAt = status.updatedAt
        repeatedChunks = attempts.filter { $0.value > 1 }
        totalAttempts = attempts.values.reduce(0, +)
        let confirmed: ChunkSet
        switch record {
        case .upload(let upload):
            name = upload.fileName
            size = upload.identity.byteCount
            chunkSize = upload.chunkSize
            totalChunks = upload.layout.chunkCount
            confirmed = upload.uploadedChunks
            sessionId = upload.sessionID ?? upload.givenSessionID
            dialect = upload.dialect == .native ? nil : upload.dialect
            uploadURL = upload.uploadURL.map { URLText.redacted($0) }
            sessionExpiresAt = upload.expiresAt
            remoteFileId = upload.remoteFileID
            computedSha256 = upload.fileHash
            hashedBytes = upload.savedHash?.offsetBytes ?? 0
        case .download(let download):
            name = LocalPath.name(of: download.destinationPath)
            size = download.expectedSize
            chunkSize = download.chunkSize
            totalChunks = download.layout?.chunkCount
            confirmed = download.downloadedChunks
            switch download.reference {
            case .file(let id): remoteFileId = id
            case .url(let url): remoteURL = URLText.redacted(url)
            }
            // A date is no tag.
            etag = download.validator.flatMap { $0.text.hasSuffix("\"") ? $0.text : nil }
            expectedSha256 = download.expectedHash
            computedSha256 = download.fileHash
            // Never saved: the bytes of an earlier run are read again before they count.
            hashedBytes = download.fileHash == nil ? 0 : download.expectedSize ?? 0
            remoteChangeCount = download.remoteChangeCount
        }
        confirmedChunks = confirmed.count
        missingRanges = confirmed.missingRanges(of: totalChunks ?? 0)
            .map { [$0.lowerBound, $0.upperBound] }
    }
}
