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
        case .unauthenticated, .forbidden, .linkInvalid, .linkExpired, .quotaExceeded,
            .rateLimited, .notFound:
            identityFacts
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
            Self.row(409, ExitStatus.failure, "The upload session accepts no more bytes.")
        case .chunkOutOfBounds:
            Self.row(400, ExitStatus.failure, "The file has no chunk with this index.")
        case .chunkHashRequired:
            Self.row(400, ExitStatus.failure, "A chunk needs its SHA-256 in a header.")
        case .rangeMismatch:
            Self.row(400, ExitStatus.failure, "Content-Range does not match this chunk.")
        case .lengthMismatch:
            Self.row(
                400, ExitStatus.network, retry: true,
                "The body is shorter or longer than announced.")
        case .chunkHashMismatch:
            Self.row(
                422, ExitStatus.integrity, retry: true,
                "The chunk does not match the announced SHA-256.")
        case .chunkConflict:
            Self.row(409, ExitStatus.integrity, "The chunk was already received with other bytes.")
        case .offsetMismatch:
            Self.row(
                409, ExitStatus.failure, retry: true,
                "The offset does not match the received bytes.")
        case .writerReplaced:
            Self.row(
                409, ExitStatus.busy, retry: true, "A newer request has replaced this one.")
        case .missingChunks:
            Self.row(409, ExitStatus.failure, retry: true, "Some chunks have not been received.")
        case .sizeMismatch:
            Self.row(
                409, ExitStatus.integrity, "Size mismatch between received and declared bytes.")
        case .integrityMismatch:
            Self.row(422, ExitStatus.integrity, "The file does not match the expected SHA-256.")
        case .idempotencyConflict:
            Self.row(422, ExitStatus.failure, "The Idempotency-Key was used for another request.")
        case .fileTooLarge:
            Self.row(413, ExitStatus.tooLarge, "The file is larger than this server accepts.")
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
                "The request body does not match the announced checksum.")
        case .uploadIsFinal:
            Self.row(
                403, ExitStatus.failure, "The upload is a final upload and accepts no bytes.")
        default:
            Self.row(
                412, ExitStatus.failure, "The server does not support this protocol version.")
        }
    }

    private var requestFacts: ErrorFacts {
        switch self {
        case .fileNotFound: Self.row(404, ExitStatus.notFound, "There is no such file.")
        case .fileGone: Self.row(410, ExitStatus.notFound, "The file has been deleted.")
        case .fileDamaged:
            Self.row(
                500, ExitStatus.integrity,
                "The server's copy of the file is damaged; upload the same file to repair it.")
        case .preconditionFailed:
            Self.row(412, ExitStatus.remoteChanged, "The file is not the requested version.")
        case .rangeNotSatisfiable:
            Self.row(416, ExitStatus.failure, "The file has no bytes in the requested range.")
        case .badRequest: Self.row(400, ExitStatus.failure, "The request is malformed.")
        case .routeNotFound: Self.row(404, ExitStatus.notFound, "There is nothing at this address.")
        case .methodNotAllowed:
            Self.row(405, ExitStatus.failure, "Method not allowed at this address.")
        case .unsupportedMediaType:
            Self.row(415, ExitStatus.failure, "Unsupported media type for this address.")
        case .unsupportedTransferCoding:
            Self.row(501, ExitStatus.failure, "Transfer-Encoding supports only chunked.")
        case .expectationFailed:
            Self.row(417, ExitStatus.failure, "Expect supports only 100-continue.")
        case .requestTooLarge:
            Self.row(413, ExitStatus.tooLarge, "The body is larger than this address accepts.")
        case .requestTimeout:
            Self.row(
                408, ExitStatus.network, retry: true,
                "The body arrived too slowly.")
        case .busy:
            Self.row(
                429, ExitStatus.busy, retry: true, "Too many concurrent uploads; try again soon.")
        case .unavailable:
            Self.row(
                503, ExitStatus.network, retry: true,
                "The service is temporarily unavailable; try again.")
        default:
            Self.row(500, ExitStatus.failure, retry: true, "Internal server error; it was logged.")
        }
    }

    private var identityFacts: ErrorFacts {
        switch self {
        case .unauthenticated:
            Self.row(401, ExitStatus.denied, "The request needs a valid token or link.")
        case .forbidden:
            Self.row(403, ExitStatus.denied, "The token or link does not permit this.")
        case .linkInvalid: Self.row(403, ExitStatus.denied, "The link is not valid.")
        case .linkExpired: Self.row(403, ExitStatus.denied, "The link has expired or was used up.")
        case .quotaExceeded:
            Self.row(413, ExitStatus.tooLarge, "The upload would exceed the owner's quota.")
        case .rateLimited:
            Self.row(429, ExitStatus.busy, retry: true, "Too many requests; try again later.")
        default:
            Self.row(404, ExitStatus.notFound, "There is no such token, key, link or owner.")
        }
    }

    /// Codes for an address that is probably wrong.
    private var addressFacts: ErrorFacts {
        switch self {
        case .nameNotFound:
            Self.row(nil, ExitStatus.network, "There is no host with this name.")
        case .tlsRefused:
            Self.row(nil, ExitStatus.network, "The secure connection to the server failed.")
        case .certificateRejected:
            Self.row(nil, ExitStatus.network, "The server's certificate was rejected.")
        case .notKedge:
            Self.row(nil, ExitStatus.usage, "The server at this address is not a Kedge server.")
        case .redirected:
            Self.row(
                nil, ExitStatus.usage, retry: true,
                "The server redirects to an address that is not followed.")
        case .redirectLoop:
            Self.row(nil, ExitStatus.failure, "The server redirects in a loop.")
        default:
            Self.row(
                nil, ExitStatus.failure,
                "The server sends the file in a content coding that was not requested.")
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
            Self.row(nil, ExitStatus.usage, "The destination exists; use overwrite to replace it.")
        case .remoteChanged:
            Self.row(nil, ExitStatus.remoteChanged, "The file changed on the server.")
        case .offline:
            Self.row(nil, ExitStatus.network, retry: true, "The server cannot be reached.")
        case .protocolViolation:
            Self.row(
                nil, ExitStatus.failure, retry: true,
                "The server's response violates the protocol.")
        case .transferNotFound: Self.row(nil, ExitStatus.notFound, "There is no such transfer.")
        case .illegalTransition:
            Self.row(nil, ExitStatus.usage, "The transfer's state does not allow this.")
        case .storeDamaged:
            Self.row(nil, ExitStatus.failure, "The transfer records cannot be read or written.")
        case .canceled: Self.row(nil, ExitStatus.failure, "The transfer was canceled.")
        case .nameNotFound, .tlsRefused, .certificateRejected, .notKedge, .redirected,
            .redirectLoop, .contentEncoded:
            addressFacts
        default: Self.row(nil, ExitStatus.usage, "The command line is invalid.")
        }
    }
}
