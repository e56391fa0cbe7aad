internal import HTTPTypes
internal import KedgeEngine
internal import KedgeModel

/// An error as the clients of a dialect are told of it.
struct DialectError: Error {
    /// What the client is told.
    var error: EngineError
    /// What the answer carries besides the problem document.
    var fields: HTTPFields
    /// What went wrong. A client may be told another code, because it goes on after that one alone.
    var reason: ErrorCode
}

extension DialectError {
    /// Turns `FILE_DAMAGED` into 410 for requests that ask at which offset an upload goes on:
    /// clients then begin it again, and the same bytes heal the file. After a 500 they would ask
    /// again and again.
    static func tellingDamageAsGone<Value>(
        fields: HTTPFields = [:], _ body: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await body()
        } catch let error as EngineError where error.code == .fileDamaged {
            throw DialectError(
                error: EngineError(.fileGone, error.code.facts.sentence), fields: fields,
                reason: error.code)
        }
    }
}
