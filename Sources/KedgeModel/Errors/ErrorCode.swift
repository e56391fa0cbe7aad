/// All errors that Kedge reports, on the server and the client.
///
/// The raw value is stable: it is the `code` of a problem document, and clients store it. ``facts``
/// is the only table of HTTP statuses, exit statuses, retry decisions and sentences. Tests check
/// the documentation and the OpenAPI contract against it.
public enum ErrorCode: String, CaseIterable, Sendable, Codable {
    // Sessions and chunks.
    case sessionNotFound = "SESSION_NOT_FOUND"
    case sessionExpired = "SESSION_EXPIRED"
    case sessionClosed = "SESSION_CLOSED"
    case chunkOutOfBounds = "CHUNK_OUT_OF_BOUNDS"
    case chunkHashRequired = "CHUNK_HASH_REQUIRED"
    case rangeMismatch = "RANGE_MISMATCH"
    case lengthMismatch = "LENGTH_MISMATCH"
    case chunkHashMismatch = "CHUNK_HASH_MISMATCH"
    case chunkConflict = "CHUNK_CONFLICT"
    case offsetMismatch = "OFFSET_MISMATCH"
    case writerReplaced = "WRITER_REPLACED"
    case missingChunks = "MISSING_CHUNKS"
    case sizeMismatch = "SIZE_MISMATCH"
    case integrityMismatch = "INTEGRITY_MISMATCH"
    case idempotencyConflict = "IDEMPOTENCY_CONFLICT"
    case fileTooLarge = "FILE_TOO_LARGE"
    case storageFull = "STORAGE_FULL"
    case tooManySessions = "TOO_MANY_SESSIONS"
    // The tus front end.
    case uploadChecksumMismatch = "UPLOAD_CHECKSUM_MISMATCH"
    case uploadIsFinal = "UPLOAD_IS_FINAL"
    case uploadVersionUnsupported = "UPLOAD_VERSION_UNSUPPORTED"
    // Files.
    case fileNotFound = "FILE_NOT_FOUND"
    case fileGone = "FILE_GONE"
    case fileDamaged = "FILE_DAMAGED"
    case preconditionFailed = "PRECONDITION_FAILED"
    case rangeNotSatisfiable = "RANGE_NOT_SATISFIABLE"
    // Requests.
    case badRequest = "BAD_REQUEST"
    case routeNotFound = "ROUTE_NOT_FOUND"
    case methodNotAllowed = "METHOD_NOT_ALLOWED"
    case unsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE"
    case unsupportedTransferCoding = "UNSUPPORTED_TRANSFER_CODING"
    case expectationFailed = "EXPECTATION_FAILED"
    case requestTooLarge = "REQUEST_TOO_LARGE"
    case requestTimeout = "REQUEST_TIMEOUT"
    case busy = "BUSY"
    case unavailable = "UNAVAILABLE"
    case internalError = "INTERNAL_ERROR"
    // Identity, links and quotas.
    case unauthenticated = "UNAUTHENTICATED"
    case forbidden = "FORBIDDEN"
    case linkInvalid = "LINK_INVALID"
    case linkExpired = "LINK_EXPIRED"
    case quotaExceeded = "QUOTA_EXCEEDED"
    case rateLimited = "RATE_LIMITED"
    case notFound = "NOT_FOUND"
    // The client.
    case fileMissing = "FILE_MISSING"
    case fileChanged = "FILE_CHANGED"
    case fileTruncated = "FILE_TRUNCATED"
    case sessionFileMismatch = "SESSION_FILE_MISMATCH"
    case diskFull = "DISK_FULL"
    case destinationExists = "DESTINATION_EXISTS"
    case remoteChanged = "REMOTE_CHANGED"
    case offline = "OFFLINE"
    case nameNotFound = "NAME_NOT_FOUND"
    case tlsRefused = "TLS_REFUSED"
    case certificateRejected = "CERTIFICATE_REJECTED"
    case notKedge = "NOT_KEDGE"
    case redirected = "REDIRECTED"
    case redirectLoop = "REDIRECT_LOOP"
    case contentEncoded = "CONTENT_ENCODED"
    case protocolViolation = "PROTOCOL_VIOLATION"
    case transferNotFound = "TRANSFER_NOT_FOUND"
    case illegalTransition = "ILLEGAL_TRANSITION"
    case storeDamaged = "STORE_DAMAGED"
    case canceled = "CANCELED"
    case usage = "USAGE"
}

/// The properties of an ``ErrorCode``.
public struct ErrorFacts: Sendable {
    /// HTTP status of the response; nil for codes of the client.
    public let httpStatus: Int?
    /// Exit status of the command when a transfer ends with this code.
    public let exitStatus: Int32
    /// True when a retry of the same request can succeed without any other change.
    public let isRetryable: Bool
    /// A sentence for people, safe to show to any client.
    public let sentence: String
}

/// Exit statuses of the command: a small, stable set.
public enum ExitStatus {
    /// The command has done everything it was asked to do.
    public static let success: Int32 = 0
    /// Any error without a status of its own.
    public static let failure: Int32 = 1
    /// Wrong usage: it needs another flag, destination or moment.
    public static let usage: Int32 = 2
    /// The service refuses its configuration: a setting, a location that it names, or a library. A
    /// restart does not help before that changes.
    public static let configuration = usage
    /// Some of several files were transferred, and some were not.
    public static let someFailed: Int32 = 3
    /// The token or link is missing, invalid or expired, or does not permit this.
    public static let denied: Int32 = 4
    /// The server was unreachable or unavailable, or the connection broke.
    public static let network: Int32 = 5
    /// The session, file or transfer does not exist, or no longer exists.
    public static let notFound: Int32 = 6
    /// Bytes do not have the expected size or SHA-256.
    public static let integrity: Int32 = 7
    /// The disk of this machine or the server's storage is full.
    public static let diskFull: Int32 = 8
    /// The local file to upload is missing or has changed.
    public static let sourceChanged: Int32 = 9
    /// The server is overloaded, a newer request took over, or another process holds the data.
    public static let busy: Int32 = 10
    /// The file on the server is no longer the version that the download started with.
    public static let remoteChanged: Int32 = 11
    /// The server does not accept a file or body of this size, or the owner's quota is exhausted.
    public static let tooLarge: Int32 = 12
    /// Stopped by SIGINT: 128 plus the signal number, as in shells.
    public static let interrupted: Int32 = 130
    /// Stopped by SIGTERM: 128 plus the signal number, as in shells.
    public static let terminated: Int32 = 143
}
