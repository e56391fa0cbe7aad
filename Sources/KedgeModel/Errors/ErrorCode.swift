/// Every error that Kedge reports, on either side of the wire.
///
/// The raw value is the stable text that travels (`code` in a problem document) and that clients
/// store. ``facts`` is the one table of what a code means: HTTP status, exit status of the command,
/// whether trying again can help, and a sentence for a person. Documentation and the OpenAPI
/// contract are checked against it; nothing else invents a status.
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
    // Uploads in the tus dialect.
    case uploadChecksumMismatch = "UPLOAD_CHECKSUM_MISMATCH"
    case uploadIsFinal = "UPLOAD_IS_FINAL"
    case uploadVersionUnsupported = "UPLOAD_VERSION_UNSUPPORTED"
    // Files.
    case fileNotFound = "FILE_NOT_FOUND"
    case fileGone = "FILE_GONE"
    case fileDamaged = "FILE_DAMAGED"
    case preconditionFailed = "PRECONDITION_FAILED"
    case rangeNotSatisfiable = "RANGE_NOT_SATISFIABLE"
    // Requests in general.
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
    // The client's own.
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

/// What an ``ErrorCode`` means.
public struct ErrorFacts: Sendable {
    /// HTTP status of the answer; nil for codes that only a client makes.
    public let httpStatus: Int?
    /// Exit status of the command when a transfer ends with this code.
    public let exitStatus: Int32
    /// True when the same request can succeed later without anybody changing anything.
    public let isRetryable: Bool
    /// A sentence for a person; safe for strangers.
    public let sentence: String
}

/// Exit statuses of the command, a small stable set.
public enum ExitStatus {
    /// Everything that was asked for is done.
    public static let success: Int32 = 0
    /// Any error that has no status of its own.
    public static let failure: Int32 = 1
    /// It has to be asked differently: another flag, destination or moment.
    public static let usage: Int32 = 2
    /// The service refuses its configuration: a setting, the place that it names, or a library. Starting
    /// again does not help before that is changed.
    public static let configuration = usage
    /// Of several files, some were transferred and some were not.
    public static let someFailed: Int32 = 3
    /// The server was out of reach, unavailable, or the connection did not hold.
    public static let network: Int32 = 5
    /// No such session, file or transfer, or it is gone.
    public static let notFound: Int32 = 6
    /// Bytes do not have the size or SHA-256 that they should have.
    public static let integrity: Int32 = 7
    /// No room for the bytes, on this machine or on the server.
    public static let diskFull: Int32 = 8
    /// The local file to upload is missing or no longer what it was.
    public static let sourceChanged: Int32 = 9
    /// The server has too much in flight, a newer request took over, or a process holds the data.
    public static let busy: Int32 = 10
    /// The file on the server is no longer the version the download began with.
    public static let remoteChanged: Int32 = 11
    /// The server does not take a file or body of this size.
    public static let tooLarge: Int32 = 12
    /// Stopped by SIGINT: 128 and the number of the signal, as shells count.
    public static let interrupted: Int32 = 130
    /// Stopped by SIGTERM: 128 and the number of the signal, as shells count.
    public static let terminated: Int32 = 143
}
