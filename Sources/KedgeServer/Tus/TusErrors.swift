internal import HTTPTypes
internal import KedgeEngine
internal import KedgeModel

/// Errors as clients of tus expect them.
enum TusErrors {
    /// Gives an error of the engine the code, and with it the status, that tus names for it, and the fields
    /// that its answer has; any other error passes.
    static func translated(_ error: any Error) -> any Error {
        guard var error = error as? EngineError else { return error }
        let reason = error.code
        var fields: HTTPFields = [:]
        switch error.code {
        case .chunkHashMismatch:
            error.code = .uploadChecksumMismatch
        case .busy, .tooManySessions, .requestTimeout:
            // Clients try again after 409 and from 500 on, and give up on any other status below.
            error.code = .unavailable
        case .sizeMismatch, .chunkConflict:
            // Another try, which 409 asks for, would make it no better. After a conflict it would go on behind
            // bytes that are not the client's.
            error.code = .badRequest
        case .offsetMismatch:
            fields[TusField.offset] = error.expectedOffset.map { String($0) }
        case .uploadVersionUnsupported:
            fields[TusField.version] = TusField.supportedVersion
        default:
            return error
        }
        return DialectError(error: error, fields: fields, reason: reason)
    }
}
