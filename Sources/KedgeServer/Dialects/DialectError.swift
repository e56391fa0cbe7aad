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
