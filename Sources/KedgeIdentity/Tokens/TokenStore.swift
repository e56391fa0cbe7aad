package import KedgeModel

/// Stores API tokens without their secrets.
///
/// Each operation is one transaction. It is durable on return and changes nothing when it throws.
package protocol TokenStore: Sendable {
    /// Adds a token. A repetition changes nothing; another token with the same id is an error.
    func insert(_ token: TokenRecord) async throws

    /// Returns the token, also an expired or revoked one; nil if there is none.
    func token(_ id: TokenID) async throws -> TokenRecord?

    /// Returns up to `limit` tokens, newest first, also expired and revoked ones.
    ///
    /// - Parameter owner: Only tokens of this owner; nil for all.
    func tokens(of owner: OwnerID?, limit: Int) async throws -> [TokenRecord]

    /// Whether there is a token that is neither expired nor revoked.
    func hasValidToken(at now: Timestamp) async throws -> Bool

    /// Revokes a token. A repetition keeps the time of the first revocation.
    ///
    /// - Returns: Whether there is such a token.
    func revokeToken(_ id: TokenID, at now: Timestamp) async throws -> Bool

    /// Records a use of a token; an earlier time than the stored one changes nothing.
    func touchToken(_ id: TokenID, at now: Timestamp) async throws

    /// Returns a stream of the changes by all nodes from now on, until the store is closed. Best
    /// effort: a change can be missing, for example after a lost connection. Ends at once if the
    /// store has one node, or cannot notify.
    func identityChanges() -> AsyncStream<IdentityChange>
}
