import KedgeIdentity
import KedgeModel

/// A store of tokens that reports the changes of other nodes.
struct NotifyingTokens: TokenStore {
    let inner: any TokenStore
    let changes: AsyncStream<IdentityChange>

    func insert(_ token: TokenRecord) async throws { try await inner.insert(token) }

    func token(_ id: TokenID) async throws -> TokenRecord? { try await inner.token(id) }

    func tokens(of owner: OwnerID?, limit: Int) async throws -> [TokenRecord] {
        try await inner.tokens(of: owner, limit: limit)
    }

    func hasValidToken(at now: Timestamp) async throws -> Bool {
        try await inner.hasValidToken(at: now)
    }

    func revokeToken(_ id: TokenID, at now: Timestamp) async throws -> Bool {
        try await inner.revokeToken(id, at: now)
    }

    func touchToken(_ id: TokenID, at now: Timestamp) async throws {
        try await inner.touchToken(id, at: now)
    }

    func identityChanges() -> AsyncStream<IdentityChange> { changes }
}
