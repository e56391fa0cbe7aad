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
    /// Runs what answers where an upload goes on. One whose file is damaged is gone: clients begin it again then,
    /// and the same bytes heal the file. After a status from 500 on they would ask again and again.
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
