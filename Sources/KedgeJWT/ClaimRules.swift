internal import KedgeIdentity
internal import KedgeModel

/// The rules by which the claims of a token become a principal.
struct ClaimRules: Sendable {
    /// Difference of clocks that is tolerated.
    static let skew: Duration = .seconds(60)

    let settings: OpenIDSettings

    /// Returns the principal of a token whose signature is right.
    func principal(
        _ claims: [String: ClaimValue], of issuer: ProviderURL, at now: Timestamp
    ) throws(BearerRefusal) -> (principal: Principal, expiresAt: Timestamp) {
        let audiences = claims["aud"]?.texts ?? []
        guard audiences.contains(where: { $0.hasBytes(of: settings.audience) }) else {
            throw BearerRefusal.wrongAudience
        }
        guard let expiresAt = try Self.time("exp", claims) else {
            throw BearerRefusal.withoutExpiry
        }
        guard now < expiresAt.advanced(by: Self.skew) else { throw BearerRefusal.expired }
        for name in ["nbf", "iat"] {
            guard let time = try Self.time(name, claims) else { continue }
            guard time <= now.advanced(by: Self.skew) else { throw BearerRefusal.notYetValid }
        }
        let owner = try owner(claims, of: issuer)
        let principal = Principal(
            owner: owner, kind: .oidc, name: owner.text, scopes: scopes(claims))
        return (principal, expiresAt)
    }

    /// Returns the time of a claim; nil if there is none.
    private static func time(
        _ name: String, _ claims: [String: ClaimValue]
    ) throws(BearerRefusal) -> Timestamp? {
        guard let claim = claims[name] else { return nil }
        // Up to the year 9999. Milliseconds in place of seconds would be a token for ever.
        guard case .number(let seconds) = claim, (0...253_402_300_799).contains(seconds) else {
            throw BearerRefusal.malformed
        }
        return Timestamp(millisecondsSinceEpoch: Int64(seconds * 1000))
    }

    private func owner(
        _ claims: [String: ClaimValue], of issuer: ProviderURL
    ) throws(BearerRefusal) -> OwnerID {
        let name = settings.ownerClaim ?? "sub"
        guard case .text(let value)? = claims[name], !value.isEmpty else {
            throw BearerRefusal.withoutOwner
        }
        // Providers let users enter any address before they verify it.
        if name == "email", claims["email_verified"] != ClaimValue.flag(true) {
            throw BearerRefusal.withoutOwner
        }
        let text = settings.ownerClaim == nil ? "oidc:\(issuer.host):\(value)" : value
        // A user who may choose a name must not get what was stored before there were owners.
        guard let owner = OwnerID(checking: text), owner != .anonymous else {
            throw BearerRefusal.withoutOwner
        }
        return owner
    }

    private func scopes(_ claims: [String: ClaimValue]) -> Set<Scope> {
        var scopes: Set<Scope> = []
        for text in claims[settings.scopeClaim]?.texts ?? [] {
            for word in text.split(separator: " ") {
                let word = String(word)
                if let bundle = ScopeBundle(rawValue: word) {
                    scopes.formUnion(bundle.scopes)
                } else if let scope = Scope(rawValue: word) {
                    scopes.insert(scope)
                }
            }
        }
        if scopes.isEmpty { scopes = settings.defaultScopes }
        if let admin = settings.adminClaim,
            (claims[admin.name]?.texts ?? []).contains(where: { $0.hasBytes(of: admin.value) })
        {
            scopes.formUnion(ScopeBundle.admin.scopes)
        }
        return scopes
    }
}
