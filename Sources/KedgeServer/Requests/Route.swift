internal import HTTPTypes
internal import Hummingbird

/// One operation of the HTTP interface.
struct Route: Sendable {
    let method: HTTPRequest.Method
    /// Path with parameters in braces, as in the OpenAPI contract.
    let path: String
    let handle: @Sendable (Request, KedgeRequestContext) async throws -> Response

    init(
        _ method: HTTPRequest.Method, _ path: String,
        _ handle: @escaping @Sendable (Request, KedgeRequestContext) async throws -> Response
    ) {
        self.method = method
        self.path = path
        self.handle = handle
    }
}
