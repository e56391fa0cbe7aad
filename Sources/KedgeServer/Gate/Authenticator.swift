internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel

/// Determines the principal of each request and checks its access to the route. Fails closed: a
/// request has a principal with the access of the route, or no handler runs.
package struct Authenticator: Sendable {
    /// Nil where every client is anonymous.
    private let tokens: TokenLookup?
    /// Whether the requests come over the Unix socket for operators.
    private let isLocal: Bool

    /// Requests over the Unix socket for operators. The user at the other end decides, and no
    /// field of a request.
    static let local = Authenticator(tokens: nil, isLocal: true)

    /// Every request gets the anonymous principal.
    package init() { self.init(tokens: nil) }

    /// Every request needs a token; with nil, every request gets the anonymous principal.
    init(tokens: TokenLookup?) { self.init(tokens: tokens, isLocal: false) }

    private init(tokens: TokenLookup?, isLocal: Bool) {
        self.tokens = tokens
        self.isLocal = isLocal
    }

    /// Returns the principal of a request; nil for a public route, which ignores credentials.
    ///
    /// Runs before the body is read, so that a refused body is not sent, and never again while it
    /// arrives: a credential that expires meanwhile does not interrupt the upload.
    ///
    /// - Throws: `UNAUTHENTICATED`, `FORBIDDEN`, `BAD_REQUEST`.
    func principal(
        of request: Request, for access: Access, _ context: KedgeRequestContext
    ) async throws -> Principal? {
        guard access != .public else { return nil }
        let principal =
            isLocal
            ? try await LocalPeer.principal(of: context.channel) : try await principal(of: request)
        context.logMetadata.set("principal", principal.kind.rawValue)
        context.logMetadata.set("owner", principal.owner)
        if let id = principal.tokenID { context.logMetadata.set("token.id", id) }
        try context.with(principal).requireAccess(access)
        return principal
    }

    private func principal(of request: Request) async throws -> Principal {
        guard let tokens else { return .anonymous }
        return Principal(try await tokens.verify(try Self.token(of: request)))
    }

    /// Reads the token (RFC 6750 section 2.1). Its text is in no error.
    private static func token(of request: Request) throws -> APIToken {
        let values = request.headers[values: .authorization]
        guard values.count < 2 else {
            throw EngineError(.badRequest, "A request may have one Authorization field.")
        }
        guard let value = values.first else { throw RequestError.noCredential }
        let words = value.split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bearer" else {
            throw RequestError.badCredential("Authorization has no Bearer token.")
        }
        do {
            return try APIToken.parse(words[1])
        } catch {
            throw RequestError.badCredential(
                error == .checksumMismatch
                    ? "The token is not typed correctly: its checksum does not fit."
                    : "The text after Bearer is not a token of Kedge.")
        }
    }
}
