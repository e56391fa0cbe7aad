internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel
internal import NIOCore

/// Determines the principal of each request and checks its access to the route. Fails closed: a
/// request has a principal with the access of the route, or no handler runs.
package struct Authenticator: Sendable {
    /// Nil where every client is anonymous.
    private let tokens: TokenLookup?
    /// Nil where JSON Web Tokens are not accepted.
    private let bearers: (any BearerVerifier)?
    /// Whether the requests come over the Unix socket for operators.
    private let isLocal: Bool
    private let onChecked: @Sendable (CheckedCredential) -> Void

    /// Requests over the Unix socket for operators. The user at the other end decides, and no
    /// field of a request.
    static let local = Authenticator(tokens: nil, bearers: nil, isLocal: true)

    /// Every request gets the anonymous principal.
    package init() { self.init(tokens: nil, bearers: nil) }

    /// Every request needs a token; with nil for `tokens`, every request gets the anonymous
    /// principal.
    ///
    /// - Parameter onChecked: Called after each check of a credential.
    init(
        tokens: TokenLookup?, bearers: (any BearerVerifier)?,
        onChecked: @escaping @Sendable (CheckedCredential) -> Void = { _ in }
    ) {
        self.init(tokens: tokens, bearers: bearers, isLocal: false, onChecked: onChecked)
    }

    private init(
        tokens: TokenLookup?, bearers: (any BearerVerifier)?, isLocal: Bool,
        onChecked: @escaping @Sendable (CheckedCredential) -> Void = { _ in }
    ) {
        self.tokens = tokens
        self.bearers = bearers
        self.isLocal = isLocal
        self.onChecked = onChecked
    }

    /// Returns the principal of a request; nil for a public route, which ignores credentials.
    ///
    /// Runs before the body is read, so that a refused body is not sent, and never again while it
    /// arrives: a credential that expires meanwhile does not interrupt the upload.
    ///
    /// - Throws: `UNAUTHENTICATED`, `FORBIDDEN`, `BAD_REQUEST`, `UNAVAILABLE`.
    func principal(
        of request: Request, for access: Access, _ context: KedgeRequestContext
    ) async throws -> Principal? {
        let peer = context.channel.remoteAddress
        try proxy?.refuseForeign(request, from: peer, context.logger)
        guard access != .public else { return nil }
        let principal =
            isLocal
            ? try await LocalPeer.principal(of: context.channel)
            : try await recordedPrincipal(of: request)
        context.logMetadata.set("principal", principal.kind.rawValue)
        context.logMetadata.set("owner", principal.owner)
        if let id = principal.tokenID { context.logMetadata.set("token.id", id) }
        if let id = principal.link?.id { context.logMetadata.set("link.id", id) }
        try Self.requirePage(of: request, principal, context)
        try context.with(principal).requireAccess(access)
        return principal
    }

    private func recordedPrincipal(of request: Request) async throws -> Principal {
        // Without identities, no credential is checked.
        guard let tokens else { return .anonymous }
        let start = ContinuousClock.now
        do {
            let principal = try await principal(of: request, tokens)
            onChecked(
                CheckedCredential(
                    kind: principal.kind.rawValue, outcome: .accepted,
                    duration: start.duration(to: .now)))
            return principal
        } catch {
            let code = (error as? RequestError)?.reason ?? EngineError(translating: error).code
            onChecked(
                CheckedCredential(
                    kind: Self.credentialKind(of: request),
                    outcome: code.facts.httpStatus < 500 ? .refused : .failed,
                    duration: start.duration(to: .now)))
            throw error
        }
    }

    /// Names the kind of a credential that was not accepted.
    private static func credentialKind(of request: Request) -> String {
        guard let value = request.headers[.authorization] else { return "none" }
        let text = value.split(separator: " ").last ?? ""
        return text.hasPrefix("eyJ") ? "oidc" : text.hasPrefix("kdg_") ? "token" : "other"
    }

    private func principal(
        of request: Request, _ tokens: TokenLookup
    ) async throws -> Principal {
        let text = try Self.bearer(of: request)
        // Each JSON object with a member begins like this in base64url.
        if text.hasPrefix("eyJ") { return try await principal(ofJWT: String(text)) }
        return Principal(try await tokens.verify(try Self.token(text)))
    }

    private func principal(ofJWT text: String) async throws -> Principal {
        guard let bearers else {
            throw RequestError.badCredential("The service does not accept JSON Web Tokens.")
        }
        do {
            return try await bearers.principal(ofJWT: text)
        } catch {
            guard error.code == .unauthenticated else {
                throw EngineError(error.code, error.sentence)
            }
            throw RequestError.badCredential(error.sentence)
        }
    }

    /// Reads the credential (RFC 6750 section 2.1). Its text is in no error.
    private static func bearer(of request: Request) throws -> Substring {
        let values = request.headers[values: .authorization]
        guard values.count < 2 else {
            throw EngineError(.badRequest, "A request may have one Authorization field.")
        }
        guard let value = values.first else { throw RequestError.noCredential }
        let words = value.split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bearer" else {
            throw RequestError.badCredential("Authorization has no Bearer token.")
        }
        return words[1]
    }

    private static func token(_ text: Substring) throws -> APIToken {
        do {
            return try APIToken.parse(text)
        } catch {
            throw RequestError.badCredential(
                error == .checksumMismatch
                    ? "The token is not typed correctly: its checksum does not fit."
                    : "The text after Bearer is not a token of Kedge.")
        }
    }
}
