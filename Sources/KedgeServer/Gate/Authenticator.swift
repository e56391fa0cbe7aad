internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel

/// Determines the principal of each request and checks its access to the route. Fails closed: a
/// request has a principal with the access of the route, or no handler runs.
package struct Authenticator: Sendable {
    package init() {}

    /// Returns the principal of a request; nil for a public route, which ignores credentials.
    ///
    /// Runs before the body is read, so that a refused body is not sent, and never again while it
    /// arrives: a credential that expires meanwhile does not interrupt the upload.
    ///
    /// - Throws: `UNAUTHENTICATED`, `FORBIDDEN`.
    func principal(
        of request: Request, for access: Access, _ context: KedgeRequestContext
    ) async throws -> Principal? {
        guard access != .public else { return nil }
        let principal = Principal.anonymous
        context.logMetadata.set("principal", principal.kind.rawValue)
        context.logMetadata.set("owner", principal.owner)
        try context.with(principal).requireAccess(access)
        return principal
    }
}
