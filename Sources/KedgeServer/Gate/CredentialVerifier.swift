internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel

/// Finds the credential of a request, and verifies it. The first kind that a request has decides: a
/// link, a token, then the identity that a proxy states. One that is refused is not replaced by
/// another.
struct CredentialVerifier: Sendable {
    let tokens: TokenLookup
    /// Nil where the service has no keys for links.
    var links: LinkLookup?
    /// Nil where JSON Web Tokens are not accepted.
    var bearers: (any BearerVerifier)?
    /// Nil where no proxy states identities.
    var proxy: ProxyIdentity?

    /// Returns the principal that the credential of a request proves.
    ///
    /// - Throws: `UNAUTHENTICATED`, `LINK_INVALID`, `LINK_EXPIRED`, `FORBIDDEN`, `BAD_REQUEST`,
    ///   `UNAVAILABLE`.
    func principal(
        of request: Request, _ context: KedgeRequestContext
    ) async throws -> Principal {
        if let text = try LinkLookup.text(of: request) {
            guard let links else {
                throw EngineError(.linkInvalid, "The service has no keys for links.")
            }
            return Principal(try await links.link(text, context))
        }
        if request.headers[.authorization] == nil,
            let principal = try proxy?.principal(of: request)
        {
            return principal
        }
        let text = try Self.bearer(of: request)
        // Each JSON object with a member begins like this in base64url.
        if text.hasPrefix("eyJ") { return try await principal(ofJWT: String(text)) }
        let token = try Self.token(text)
        // Also for a token that is refused: its id is no secret, and finds its row.
        context.logMetadata.set("token.id", token.id)
        return Principal(try await tokens.verify(token))
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

    /// Names the kind of a credential that was not accepted.
    static func kind(of request: Request) -> String {
        if request.uri.queryParameters.get("link") != nil { return Principal.Kind.link.rawValue }
        guard let value = request.headers[.authorization] else { return "none" }
        let text = value.split(separator: " ").last ?? ""
        if text.hasPrefix(LinkSigner.prefix) { return Principal.Kind.link.rawValue }
        if text.hasPrefix("eyJ") { return Principal.Kind.oidc.rawValue }
        return text.hasPrefix(APIToken.prefix) ? Principal.Kind.token.rawValue : "other"
    }
}
