import KedgeIdentity
import KedgeServer
import KedgeTesting
import Testing

/// Lends a server behind a proxy on this machine that states identities in `X-Forwarded-User`.
@discardableResult
func withProxyServer<Result: Sendable>(
    secretFile: String? = nil, scopes: Set<Scope> = ScopeBundle.user.scopes,
    trusted: String = "127.0.0.1", _ body: (RunningServer) async throws -> Result
) async throws -> Result {
    let proxies = try #require(TrustedProxies(text: trusted))
    let identity = try #require(
        ProxyIdentitySettings(
            header: "X-Forwarded-User", secretFile: secretFile, scopes: scopes))
    return try await withServer {
        $0.identityMode = .tokens
        $0.trustedProxies = proxies
        $0.proxyIdentity = identity
    } _: { server in
        try await body(server)
    }
}

/// The field that states an identity.
func proxyUser(_ name: String) -> (String, String) { ("X-Forwarded-User", name) }
