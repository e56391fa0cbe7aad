/// The OpenID providers whose tokens count, and the meaning of their claims.
package struct OpenIDSettings: Hashable, Sendable {
    /// Addresses of the providers. Their hosts differ, because an owner has only the host.
    package let issuers: [ProviderURL]
    /// The text that `aud` of each token must contain.
    package let audience: String
    /// The claim with the owner; nil for the host of the issuer and `sub`.
    package var ownerClaim: String?
    /// The claim with the scopes.
    package var scopeClaim = "scope"
    /// Scopes of a token that names none.
    package var defaultScopes: Set<Scope> = []
    /// The claim that gives every scope; nil for none.
    package var adminClaim: AdminClaim?

    package init(issuers: [ProviderURL], audience: String) {
        self.issuers = issuers
        self.audience = audience
    }
}
