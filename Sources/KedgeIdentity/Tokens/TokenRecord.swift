internal import KedgeHash
package import KedgeModel
internal import KedgeSecrets

/// An API token as it is stored.
package struct TokenRecord: Hashable, Sendable {
    package let id: TokenID
    package let secretDigest: SHA256Digest
    package let owner: OwnerID
    package let scopes: Set<Scope>
    /// A name for people.
    package let name: String
    /// The name of the principal that made the token.
    package let createdBy: String
    package let createdAt: Timestamp
    /// Nil for a token that does not expire.
    package var expiresAt: Timestamp?
    /// Nil until the first use. At most a minute behind.
    package var lastUsedAt: Timestamp?
    package var revokedAt: Timestamp?

    package init(
        id: TokenID, secretDigest: SHA256Digest, owner: OwnerID, scopes: Set<Scope>, name: String,
        createdBy: String, createdAt: Timestamp, expiresAt: Timestamp? = nil,
        lastUsedAt: Timestamp? = nil, revokedAt: Timestamp? = nil
    ) {
        self.id = id
        self.secretDigest = secretDigest
        self.owner = owner
        self.scopes = scopes
        self.name = name
        self.createdBy = createdBy
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.lastUsedAt = lastUsedAt
        self.revokedAt = revokedAt
    }

    /// The digest to compare with when there is no row. No secret is empty, so none has it.
    private static let unknownDigest = SHA256Hasher.digest(of: [])

    /// Compares a token with the row of its id.
    ///
    /// Takes the same time for an unknown id as for a wrong secret, and shows that a token has
    /// expired or was revoked only to a holder of its secret.
    ///
    /// - Parameter record: The row of the token's id; nil if there is none.
    package static func verify(
        _ token: APIToken, against record: TokenRecord?, at now: Timestamp
    ) -> TokenOutcome {
        let expected = record?.secretDigest ?? unknownDigest
        let matches = ConstantTime.areEqual(token.secretDigest.bytes, expected.bytes)
        guard let record, matches, record.id == token.id else { return .unknown }
        // Clocks of nodes differ, so a time of revocation in the future counts, too.
        if record.revokedAt != nil { return .revoked }
        if let expiresAt = record.expiresAt, expiresAt <= now { return .expired }
        return .valid(record)
    }
}

/// The outcome of verifying a token.
package enum TokenOutcome: Hashable, Sendable {
    case valid(TokenRecord)
    /// There is no such token, or it has another secret.
    case unknown
    case expired
    case revoked
}
