internal import HTTPTypes
internal import KedgeEngine
internal import KedgeModel

/// A refusal of a request, with the response fields that explain it to clients.
struct RequestError: Error {
    /// The error that the client receives.
    var error: EngineError
    /// Response fields besides the problem document.
    var fields: HTTPFields
    /// The original error code. The client may receive another one, because it resumes only after
    /// that.
    var reason: ErrorCode
}

extension RequestError {
    /// Turns `FILE_DAMAGED` into 410 for requests that ask for the offset of an upload. Clients
    /// then start the upload again, and the same bytes repair the file. After a 500 they would
    /// retry forever.
    static func reportingDamageAsGone<Value>(
        fields: HTTPFields = [:], _ body: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await body()
        } catch let error as EngineError where error.code == .fileDamaged {
            throw RequestError(
                error: EngineError(.fileGone, error.code.facts.sentence), fields: fields,
                reason: error.code)
        }
    }
}
