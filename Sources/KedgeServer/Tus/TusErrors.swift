internal import HTTPTypes
internal import KedgeEngine
internal import KedgeModel

/// Translates errors for tus clients.
enum TusErrors {
    /// Gives an engine error the code, status and fields that tus defines for it. Any other error
    /// is returned unchanged.
    static func translated(_ error: any Error) -> any Error {
        guard var error = error as? EngineError else { return error }
        let reason = error.code
        var fields: HTTPFields = [:]
        switch error.code {
        case .chunkHashMismatch:
            error.code = .uploadChecksumMismatch
        case .busy, .tooManySessions, .rateLimited, .requestTimeout:
            // Clients retry after 409 and 5xx, and give up after any other 4xx.
            error.code = .unavailable
        case .sizeMismatch, .chunkConflict:
            // A 409 would ask for a retry, which cannot help here. After a conflict, the client
            // would continue behind bytes that are not its own.
            error.code = .badRequest
        case .offsetMismatch:
            fields[TusField.offset] = error.expectedOffset.map { String($0) }
        case .uploadVersionUnsupported:
            fields[TusField.version] = TusField.supportedVersion
        default:
            return error
        }
        return RequestError(error: error, fields: fields, reason: reason)
    }
}
