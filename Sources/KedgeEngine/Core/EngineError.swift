package import KedgeModel

/// An error of the engine: a code, and the fields that belong to it.
///
/// ``detail`` is safe to show to clients; ``cause`` is for the log only.
package struct EngineError: Error, Sendable {
    package var code: ErrorCode
    package var detail: String?
    package var cause: String?
    package var missing: [ClosedRange<Int>]?
    package var expectedOffset: Int64?
    package var expectedDigest: SHA256Digest?
    package var actualDigest: SHA256Digest?
    package var maxBytes: Int64?
    /// The limit of the owner that the request would exceed.
    package var quota: QuotaRefusal?
    /// Distinguishes the causes of one code; nil for codes with one cause.
    package var reason: String?
    /// Seconds after which a retry can succeed; nil for the default.
    package var retryAfterSeconds: Int?

    package init(_ code: ErrorCode, _ detail: String? = nil, cause: String? = nil) {
        self.code = code
        self.detail = detail
        self.cause = cause
    }
}

extension EngineError: Equatable {
    package static func == (left: EngineError, right: EngineError) -> Bool {
        left.code == right.code
    }
}

extension EngineError: CustomStringConvertible, CustomDebugStringConvertible {
    package var description: String { code.rawValue }
    package var debugDescription: String {
        [code.rawValue, detail, cause].compactMap { $0 }.joined(separator: ": ")
    }
}

extension EngineError {
    /// Translates an error of a port; an engine error passes unchanged.
    package init(translating error: any Error) {
        switch error {
        case let error as EngineError:
            self = error
        case let error as MetadataError:
            self.init(metadata: error)
        case let error as ByteStoreError:
            self.init(bytes: error)
        case is CancellationError:
            self.init(.unavailable, cause: "the request was canceled")
        default:
            self.init(.internalError, cause: CauseText.of(error))
        }
    }

    private init(metadata error: MetadataError) {
        switch error {
        case .notFound: self.init(.sessionNotFound)
        case .wrongState(let state): self = .closed(state)
        case .writerReplaced: self.init(.writerReplaced)
        case .quotaExceeded(let refusal): self = .refused(refusal)
        case .foreignBytes(let place):
            self.init(.internalError, cause: "the rows belong to bytes at \(place)")
        case .unavailable(let cause): self.init(.unavailable, cause: cause)
        case .full(let cause): self.init(.storageFull, cause: cause)
        case .failed(let cause): self.init(.internalError, cause: cause)
        }
    }

    private init(bytes error: ByteStoreError) {
        switch error {
        case .notFound: self.init(.internalError, cause: "bytes that a row refers to are missing")
        case .notAssembled:
            self.init(.unavailable, cause: "the file's bytes are not assembled yet")
        case .full(let cause): self.init(.storageFull, cause: cause)
        case .unavailable(let cause): self.init(.unavailable, cause: cause)
        case .failed(let cause): self.init(.internalError, cause: cause)
        }
    }

    /// Returns the error for a request that continues at another offset than the expected one.
    package static func offsetMismatch(expected: Int64) -> EngineError {
        var error = EngineError(.offsetMismatch)
        error.expectedOffset = expected
        return error
    }

    /// Returns the error for a file or body of more bytes than are accepted.
    package static func tooLarge(_ detail: String? = nil, maxBytes: Int64?) -> EngineError {
        var error = EngineError(.fileTooLarge, detail)
        error.maxBytes = maxBytes
        return error
    }

    /// Returns the error for a change by which an owner would exceed a limit.
    static func refused(_ refusal: QuotaRefusal) -> EngineError {
        var error =
            switch refusal.kind {
            case .storedBytes: EngineError(.quotaExceeded)
            case .openSessions:
                EngineError(
                    .tooManySessions,
                    "The owner has the maximum of \(refusal.limit) unfinished uploads.")
            case .fileBytes:
                EngineError.tooLarge(
                    "The file is larger than the owner may store.", maxBytes: refusal.limit)
            }
        error.quota = refusal
        return error
    }

    /// Returns the error for a session that lacks these chunks.
    static func missingChunks(
        _ missing: [ClosedRange<Int>]?, _ detail: String? = nil, cause: String? = nil
    ) -> EngineError {
        var error = EngineError(.missingChunks, detail, cause: cause)
        error.missing = missing
        return error
    }

    /// Returns the error for bytes of a chunk that do not match their declared digest.
    static func wrongHash(expected: SHA256Digest, actual: SHA256Digest) -> EngineError {
        EngineError(.chunkHashMismatch, expected: expected, actual: actual)
    }

    /// Returns the error for a chunk that was committed with another digest.
    static func conflict(stored: SHA256Digest, sent: SHA256Digest) -> EngineError {
        EngineError(.chunkConflict, expected: stored, actual: sent)
    }

    /// Returns the error for a file that does not match its declared digest.
    static func integrityMismatch(expected: SHA256Digest, actual: SHA256Digest) -> EngineError {
        EngineError(.integrityMismatch, expected: expected, actual: actual)
    }

    private init(_ code: ErrorCode, expected: SHA256Digest, actual: SHA256Digest) {
        self.init(code)
        expectedDigest = expected
        actualDigest = actual
    }

    /// The error for a slow body that is stopped to make room. Its received bytes are kept.
    static var crowded: EngineError {
        var error = EngineError(.busy, "Other uploads wait; received bytes are kept. Resume later.")
        error.retryAfterSeconds = 2
        return error
    }

    /// The error for a body that is likely to be slow while too many slow bodies are written.
    static var postponed: EngineError {
        var error = EngineError(.busy)
        error.retryAfterSeconds = 5
        return error
    }

    /// Returns the error for a session that is in this state and not open.
    static func closed(_ state: SessionState) -> EngineError {
        switch state {
        case .expired: EngineError(.sessionExpired)
        default: EngineError(.sessionClosed, "The session is \(state.rawValue).")
        }
    }
}

/// Runs an operation of a port and translates its errors.
func translating<Result>(_ body: () async throws -> Result) async throws -> Result {
    do {
        return try await body()
    } catch {
        throw EngineError(translating: error)
    }
}
