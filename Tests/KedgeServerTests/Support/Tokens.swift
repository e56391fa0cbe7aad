import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting

extension RunningServer {
    /// Stores a new token.
    func makeToken(
        _ scopes: Set<Scope> = ScopeBundle.user.scopes, owner: String = "alice",
        expiresIn lifetime: Duration? = nil
    ) async throws -> APIToken {
        let token = APIToken.generate()
        let now = fixture.clock.now()
        try await tokens.insert(
            TokenRecord(
                id: token.id, secretDigest: token.secretDigest, owner: OwnerID(owner),
                scopes: scopes, name: "test", createdBy: "test", createdAt: now,
                expiresAt: lifetime.map { now.advanced(by: $0) }))
        return token
    }

    /// Lists the files with a token.
    func list(_ token: APIToken) async throws -> HTTPAnswer {
        try await get("/files", token.fields)
    }
}

extension APIToken {
    /// The field that carries the token.
    var fields: [(String, String)] { [("Authorization", "Bearer \(text)")] }
}

/// Lends a server that requires tokens.
@discardableResult
func withTokenServer<Result: Sendable>(
    _ body: (RunningServer) async throws -> Result
) async throws -> Result {
    try await withServer {
        $0.identityMode = .tokens
    } _: { server in
        try await body(server)
    }
}
