import KedgeModel
import Testing

/// R67, R107: the table of error codes.
struct ErrorCodeTests {
    private static let designed = [
        "SESSION_NOT_FOUND", "SESSION_EXPIRED", "SESSION_CLOSED", "CHUNK_OUT_OF_BOUNDS",
        "RANGE_MISMATCH", "LENGTH_MISMATCH", "CHUNK_HASH_MISMATCH", "CHUNK_CONFLICT",
        "MISSING_CHUNKS", "SIZE_MISMATCH", "INTEGRITY_MISMATCH", "FILE_TOO_LARGE", "STORAGE_FULL",
        "FILE_NOT_FOUND", "FILE_GONE", "OFFSET_MISMATCH", "BAD_REQUEST", "BUSY", "UNAVAILABLE",
        "FILE_MISSING", "FILE_CHANGED", "DISK_FULL", "REMOTE_CHANGED", "OFFLINE",
    ]

    private static let clientSide: Set<ErrorCode> = [
        .fileMissing, .fileChanged, .fileTruncated, .sessionFileMismatch, .diskFull,
        .destinationExists, .remoteChanged, .offline, .nameNotFound, .tlsRefused,
        .certificateRejected, .notKedge, .redirected,
        .redirectLoop, .contentEncoded,
        .protocolViolation, .transferNotFound, .illegalTransition, .storeDamaged, .canceled, .usage,
    ]

    private static let retryable: Set<ErrorCode> = [
        .lengthMismatch, .chunkHashMismatch, .offsetMismatch, .writerReplaced, .missingChunks,
        .storageFull, .tooManySessions, .uploadChecksumMismatch, .requestTimeout, .busy,
        .unavailable, .internalError, .rateLimited,
        .offline, .redirected, .protocolViolation,
    ]

    private static let statuses: [ErrorCode: Int] = [
        .sessionNotFound: 404, .sessionExpired: 410, .sessionClosed: 409, .chunkOutOfBounds: 400,
        .chunkHashRequired: 400, .rangeMismatch: 400, .lengthMismatch: 400, .chunkHashMismatch: 422,
        .chunkConflict: 409, .offsetMismatch: 409, .writerReplaced: 409, .missingChunks: 409,
        .sizeMismatch: 409, .integrityMismatch: 422, .idempotencyConflict: 422, .fileTooLarge: 413,
        .storageFull: 507, .tooManySessions: 429, .uploadChecksumMismatch: 460, .uploadIsFinal: 403,
        .uploadVersionUnsupported: 412, .fileNotFound: 404, .fileGone: 410, .fileDamaged: 500,
        .preconditionFailed: 412, .rangeNotSatisfiable: 416, .badRequest: 400,
        .routeNotFound: 404, .methodNotAllowed: 405, .unsupportedMediaType: 415,
        .unsupportedTransferCoding: 501, .expectationFailed: 417, .requestTooLarge: 413,
        .requestTimeout: 408, .busy: 429,
        .unavailable: 503, .internalError: 500,
        .unauthenticated: 401, .forbidden: 403, .linkInvalid: 403, .linkExpired: 403,
        .quotaExceeded: 413, .rateLimited: 429, .notFound: 404,
    ]

    @Test(arguments: designed)
    func `every code of the original design is in the error table`(text: String) {
        #expect(ErrorCode(rawValue: text) != nil)
    }

    @Test func `error codes are unique upper-case words`() {
        let texts = ErrorCode.allCases.map(\.rawValue)
        #expect(Set(texts).count == texts.count)
        let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZ_")
        for text in texts {
            #expect(text.allSatisfy(allowed.contains))
            #expect(!text.isEmpty && !text.hasPrefix("_") && !text.hasSuffix("_"))
        }
    }

    @Test(arguments: ErrorCode.allCases)
    func `an error code has the HTTP status of the contract`(code: ErrorCode) {
        #expect(code.facts.httpStatus == Self.statuses[code])
        #expect((code.facts.httpStatus == nil) == Self.clientSide.contains(code))
    }

    @Test(arguments: ErrorCode.allCases)
    func `an error code is retryable only where another attempt can help`(code: ErrorCode) {
        #expect(code.facts.isRetryable == Self.retryable.contains(code))
    }

    @Test(arguments: ErrorCode.allCases)
    func `no error code gives the exit status of a success or a signal`(code: ErrorCode) {
        #expect((1..<126).contains(code.facts.exitStatus))
        #expect(code.facts.exitStatus != ExitStatus.someFailed)
        #expect(!code.facts.sentence.isEmpty)
    }

    @Test(
        arguments: [
            (.storageFull, ExitStatus.diskFull), (.diskFull, ExitStatus.diskFull),
            (.fileMissing, ExitStatus.sourceChanged), (.fileChanged, ExitStatus.sourceChanged),
            (.integrityMismatch, ExitStatus.integrity), (.chunkHashMismatch, ExitStatus.integrity),
            (.remoteChanged, ExitStatus.remoteChanged), (.offline, ExitStatus.network),
            (.sessionNotFound, ExitStatus.notFound), (.fileGone, ExitStatus.notFound),
            (.fileDamaged, ExitStatus.integrity), (.fileTooLarge, ExitStatus.tooLarge),
            (.busy, ExitStatus.busy), (.unauthenticated, ExitStatus.denied),
            (.forbidden, ExitStatus.denied), (.linkInvalid, ExitStatus.denied),
            (.linkExpired, ExitStatus.denied), (.quotaExceeded, ExitStatus.tooLarge),
            (.rateLimited, ExitStatus.busy), (.notFound, ExitStatus.notFound),
            (.usage, ExitStatus.usage),
        ] as [(ErrorCode, Int32)])
    func `causes that call for different actions have different exit statuses`(
        code: ErrorCode, status: Int32
    ) {
        #expect(code.facts.exitStatus == status)
    }

    @Test(arguments: ErrorCode.allCases.filter { $0 != .usage })
    func `no error code falls into the default row of another part of the table`(code: ErrorCode) {
        // Each part of the table ends in a default row. A code in the wrong part would get it.
        #expect(code == .storageFull || code.facts.sentence != ErrorCode.storageFull.facts.sentence)
        #expect(
            code == .internalError || code.facts.sentence != ErrorCode.internalError.facts.sentence)
        #expect(code == .forbidden || code.facts.sentence != ErrorCode.forbidden.facts.sentence)
        #expect(code.facts.sentence != ErrorCode.usage.facts.sentence)
    }
}
