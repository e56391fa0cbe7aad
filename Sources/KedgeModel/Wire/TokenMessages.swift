/// Body of `POST /tokens`.
public struct CreateTokenRequest: Codable, Hashable, Sendable {
    private enum CodingKeys: String, CodingKey, CaseIterable {
        case name, owner, scopes, expiresInSeconds
    }

    /// A name for people.
    public var name: String
    /// The owner of the sessions and files that the token gives access to.
    public var owner: String
    /// Names of scopes and of bundles of scopes.
    public var scopes: [String]
    /// Time after which the token expires; nil for never.
    public var expiresInSeconds: Int64?

    /// Creates the request.
    public init(name: String, owner: String, scopes: [String], expiresInSeconds: Int64? = nil) {
        self.name = name
        self.owner = owner
        self.scopes = scopes
        self.expiresInSeconds = expiresInSeconds
    }

    /// Decodes the request; an unknown member is an error.
    public init(from decoder: any Decoder) throws {
        try decoder.requireMembers(among: Set(CodingKeys.allCases.map(\.rawValue)))
        let values = try decoder.container(keyedBy: CodingKeys.self)
        name = try values.decode(String.self, forKey: .name)
        owner = try values.decode(String.self, forKey: .owner)
        scopes = try values.decode([String].self, forKey: .scopes)
        expiresInSeconds = try values.decodeIfPresent(Int64.self, forKey: .expiresInSeconds)
    }
}

/// An API token without its secret.
public struct TokenDescription: Codable, Hashable, Sendable {
    /// The 12 characters after `kdg_`, which are no secret.
    public var tokenId: String
    /// A name for people.
    public var name: String
    /// The owner of the sessions and files that the token gives access to.
    public var owner: String
    /// Names of scopes, in alphabetical order.
    public var scopes: [String]
    /// The principal that made the token.
    public var createdBy: String
    /// The time at which the token was made.
    public var createdAt: Timestamp
    /// Nil for a token that does not expire.
    public var expiresAt: Timestamp?
    /// Nil before the first use; at most a minute behind.
    public var lastUsedAt: Timestamp?
    /// Nil for a token that was not revoked.
    public var revokedAt: Timestamp?
    /// The token with its secret; only in the answer to its creation.
    public var token: String?

    /// Creates the description.
    public init(
        tokenId: String, name: String, owner: String, scopes: [String], createdBy: String,
        createdAt: Timestamp, expiresAt: Timestamp? = nil, lastUsedAt: Timestamp? = nil,
        revokedAt: Timestamp? = nil, token: String? = nil
    ) {
        self.tokenId = tokenId
        self.name = name
        self.owner = owner
        self.scopes = scopes
        self.createdBy = createdBy
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.lastUsedAt = lastUsedAt
        self.revokedAt = revokedAt
        self.token = token
    }
}

/// Response to `GET /tokens`: the newest tokens first.
public struct TokenList: Codable, Hashable, Sendable {
    /// The tokens, at most `limit`.
    public var tokens: [TokenDescription]
    /// Whether there are older tokens.
    public var hasMore: Bool

    /// Creates the list.
    public init(tokens: [TokenDescription], hasMore: Bool) {
        self.tokens = tokens
        self.hasMore = hasMore
    }
}
