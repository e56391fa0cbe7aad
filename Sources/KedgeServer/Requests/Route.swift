internal import HTTPTypes
internal import Hummingbird
internal import KedgeIdentity

/// One operation of the HTTP interface.
struct Route: Sendable {
    typealias Handler = @Sendable (Request, KedgeRequestContext) async throws -> Response

    let method: HTTPRequest.Method
    /// Path with parameters in braces, as in the OpenAPI contract.
    let path: String
    /// The principals that may use it. Required, so that no operation is open by accident.
    let access: Access
    let handle: Handler

    /// Whether a request begins an upload, in any protocol.
    var createsUpload: Bool {
        guard method == .post, case .anyOf(let scopes) = access.rule else { return false }
        return scopes.contains(.uploadsWrite) && !path.hasSuffix("/finalize")
    }

    init(
        _ method: HTTPRequest.Method, _ path: String, _ access: Access,
        _ handle: @escaping Handler
    ) {
        self.method = method
        self.path = path
        self.access = access
        self.handle = handle
    }
}
