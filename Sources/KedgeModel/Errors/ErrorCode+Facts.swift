extension ErrorCode {
    /// The code's row in the table.
    public var facts: ErrorFacts {
        switch self {
        case .sessionNotFound, .sessionExpired, .sessionClosed, .chunkOutOfBounds,
            .chunkHashRequired, .rangeMismatch, .lengthMismatch, .chunkHashMismatch,
            .chunkConflict, .offsetMismatch, .writerReplaced, .missingChunks, .sizeMismatch,
            .integrityMismatch, .idempotencyConflict, .fileTooLarge, .storageFull,
            .tooManySessions:
            sessionFacts
        case .uploadChecksumMismatch, .uploadIsFinal, .uploadVersionUnsupported:
            uploadFacts
        case .fileNotFound, .fileGone, .fileDamaged, .preconditionFailed, .rangeNotSatisfiable,
            .badRequest, .routeNotFound, .methodNotAllowed, .unsupportedMediaType,
            .unsupportedTransferCoding, .expectationFailed, .requestTooLarge,
            .requestTimeout, .busy, .unavailable, .internalError:
            requestFacts
        case .fileMissing, .fileChanged, .fileTruncated, .sessionFileMismatch, .diskFull,
            .destinationExists, .remoteChanged, .offline, .nameNotFound, .tlsRefused,
            .certificateRejected,
            .notKedge, .redirected, .redirectLoop, .contentEncoded, .protocolViolation,
            .transferNotFound, .illegalTransition, .storeDamaged, .canceled, .usage:
            clientFacts
        }
    }

    private static func row(
        _ httpStatus: Int?, _ exitStatus: Int32, retry: Bool = false, _ sentence: String
    ) -> ErrorFacts {
        ErrorFacts(
            httpStatus: httpStatus, exitStatus: exitStatus, isRetryable: retry, sentence: sentence)
    }

    private var sessionFacts: ErrorFacts {
        switch self {
        case .sessionNotFound:
            Self.row(404, ExitStatus.notFound, "There is no such upload session.")
        case .sessionExpired:
            Self.row(410, ExitStatus.notFound, "The upload session has expired.")
        case .sessionClosed:
            Self.row(409, ExitStatus.failure, "The upload session takes no more bytes.")
        case .chunkOutOfBounds:
            Self.row(400, ExitStatus.failure, "The file has no chunk with this index.")
        case .chunkHashRequired:
            Self.row(400, ExitStatus.failure, "A chunk needs its SHA-256 in a header.")
        case .rangeMismatch:
            Self.row(400, ExitStatus.failure, "Content-Range does not fit this chunk.")
        case .lengthMismatch:
            Self.row(
                400, ExitStatus.network, retry: true,
                "The body is shorter or longer than announced.")
        case .chunkHashMismatch:
            Self.row(
                422, ExitStatus.integrity, retry: true,
                "The bytes of the chunk do not have the announced SHA-256.")
        case .chunkConflict:
            Self.row(409, ExitStatus.integrity, "The chunk was received before with other bytes.")
        case .offsetMismatch:
            Self.row(
                409, ExitStatus.failure, retry: true,
                "The bytes do not start where the last ended.")
        case .writerReplaced:
            Self.row(
                409, ExitStatus.busy, retry: true, "A newer request took over writing these bytes.")
        case .missingChunks:
            Self.row(409, ExitStatus.failure, retry: true, "Some chunks have not been received.")
        case .sizeMismatch:
            Self.row(409, ExitStatus.integrity, "The received bytes are not as many as declared.")
        case .integrityMismatch:
            Self.row(422, ExitStatus.integrity, "The file does not have the expected SHA-256.")
        case .idempotencyConflict:
            Self.row(422, ExitStatus.failure, "The Idempotency-Key was used for another request.")
        case .fileTooLarge:
            Self.row(413, ExitStatus.tooLarge, "The file is larger than this server takes.")
        case .tooManySessions:
            Self.row(
                429, ExitStatus.busy, retry: true, "Too many uploads are open; try again later.")
        default:
            Self.row(507, ExitStatus.diskFull, retry: true, "The server's storage is full.")
        }
    }

    /// Codes with a status of their own in tus 1.0.
    private var uploadFacts: ErrorFacts {
        switch self {
        case .uploadChecksumMismatch:
            Self.row(
                460, ExitStatus.integrity, retry: true,
                "The bytes of the request do not have the announced checksum.")
        case .uploadIsFinal:
            Self.row(
                403, ExitStatus.failure, "The upload is made of other uploads and takes no bytes.")
        default:
            Self.row(
                412, ExitStatus.failure, "The server does not speak this version of the protocol.")
        }
    }

    private var requestFacts: ErrorFacts {
        switch self {
        case .fileNotFound: Self.row(404, ExitStatus.notFound, "There is no such file.")
        case .fileGone: Self.row(410, ExitStatus.notFound, "The file has been deleted.")
        case .fileDamaged:
            Self.row(
                500, ExitStatus.integrity,
                "The server's copy of the file is damaged; upload the same file again to heal it.")
        case .preconditionFailed:
            Self.row(412, ExitStatus.remoteChanged, "The file is not the version asked for.")
        case .rangeNotSatisfiable:
            Self.row(416, ExitStatus.failure, "The file has no bytes in the range asked for.")
        case .badRequest: Self.row(400, ExitStatus.failure, "The request is not well formed.")
        case .routeNotFound: Self.row(404, ExitStatus.notFound, "There is nothing at this address.")
        case .methodNotAllowed:
            Self.row(405, ExitStatus.failure, "This address does not take this method.")
        case .unsupportedMediaType:
            Self.row(415, ExitStatus.failure, "The body is not of a type this address takes.")
        case .unsupportedTransferCoding:
            Self.row(501, ExitStatus.failure, "The body's Transfer-Encoding is not chunked alone.")
        case .expectationFailed:
            Self.row(417, ExitStatus.failure, "Expect asks for something else than 100-continue.")
        case .requestTooLarge:
            Self.row(413, ExitStatus.tooLarge, "The body is larger than this address takes.")
        case .requestTimeout:
            Self.row(
                408, ExitStatus.network, retry: true,
                "The body arrived too slowly to go on waiting.")
        case .busy:
            Self.row(429, ExitStatus.busy, retry: true, "Too much is in flight; try again soon.")
        case .unavailable:
            Self.row(
                503, ExitStatus.network, retry: true, "The service cannot answer now; try again.")
        default:
            Self.row(500, ExitStatus.failure, retry: true, "The service failed; it was logged.")
        }
    }

    /// Codes for an address that is probably wrong.
    private var addressFacts: ErrorFacts {
        switch self {
        case .nameNotFound:
            Self.row(nil, ExitStatus.network, "There is no host with this name.")
        case .tlsRefused:
            Self.row(nil, ExitStatus.network, "There is no secure connection to the server.")
        case .certificateRejected:
            Self.row(nil, ExitStatus.network, "The server's certificate is not accepted.")
        case .notKedge:
            Self.row(nil, ExitStatus.usage, "What answers at this address is no Kedge server.")
        case .redirected:
            Self.row(
                nil, ExitStatus.usage, retry: true,
                "The server points to an address that is not followed.")
        case .redirectLoop:
            Self.row(nil, ExitStatus.failure, "The server redirects in circles.")
        default:
            Self.row(
                nil, ExitStatus.failure,
                "The server sends the file in a coding that was not asked for.")
        }
    }

    private var clientFacts: ErrorFacts {
        switch self {
        case .fileMissing:
            Self.row(nil, ExitStatus.sourceChanged, "The local file is missing; select it again.")
        case .fileChanged:
            Self.row(nil, ExitStatus.sourceChanged, "The local file changed during the upload.")
        case .fileTruncated:
            Self.row(nil, ExitStatus.integrity, "The file ends before its format says it does.")
        case .sessionFileMismatch:
            Self.row(
                nil, ExitStatus.sourceChanged, "The upload session was begun with another file.")
        case .diskFull: Self.row(nil, ExitStatus.diskFull, "The local disk is full.")
        case .destinationExists:
            Self.row(nil, ExitStatus.usage, "The destination exists; say overwrite to replace it.")
        case .remoteChanged:
            Self.row(nil, ExitStatus.remoteChanged, "The file changed on the server.")
        case .offline:
            Self.row(nil, ExitStatus.network, retry: true, "The server cannot be reached.")
        case .protocolViolation:
            Self.row(
                nil, ExitStatus.failure, retry: true, "The server's answer is not what was asked.")
        case .transferNotFound: Self.row(nil, ExitStatus.notFound, "There is no such transfer.")
        case .illegalTransition:
            Self.row(nil, ExitStatus.usage, "The transfer's state does not allow this.")
        case .storeDamaged:
            Self.row(nil, ExitStatus.failure, "The transfer records cannot be read or written.")
        case .canceled: Self.row(nil, ExitStatus.failure, "The transfer was canceled.")
        case .nameNotFound, .tlsRefused, .certificateRejected, .notKedge, .redirected,
            .redirectLoop, .contentEncoded:
            addressFacts
        default: Self.row(nil, ExitStatus.usage, "The command line is not understood.")
        }
    }
}
