internal import HTTPTypes
internal import KedgeEngine

/// An error whose answer carries fields that its dialect asks for, besides the problem document.
struct DialectError: Error {
    var error: EngineError
    var fields: HTTPFields
}
