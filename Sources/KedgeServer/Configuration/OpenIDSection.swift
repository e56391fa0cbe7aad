internal import Foundation
internal import KedgeIdentity

/// The settings of the group `oidc`.
struct OpenIDSection {
    /// Returns the text of a setting.
    let text: (ConfigurationKey) -> String

    /// Returns nil without issuers.
    ///
    /// - Throws: ``ConfigurationError``
    func settings(with mode: IdentityMode) throws -> OpenIDSettings? {
        guard !text(.oidcIssuers).isEmpty else { return nil }
        guard mode == .tokens else {
            throw ConfigurationError(
                "oidc.issuers names issuers of tokens, but identity.mode is \(mode.rawValue). Set "
                    + "identity.mode to tokens.")
        }
        var settings = OpenIDSettings(issuers: try issuers(), audience: try audience())
        let ownerClaim = text(.oidcOwnerClaim)
        settings.ownerClaim = ownerClaim.isEmpty ? nil : ownerClaim
        settings.scopeClaim = text(.oidcScopeClaim)
        do {
            settings.defaultScopes = try Scope.parse(text(.oidcDefaultScopes))
        } catch {
            throw ConfigurationError("oidc.defaultScopes: \(error)")
        }
        if !text(.oidcAdminClaim).isEmpty {
            guard let claim = AdminClaim(text(.oidcAdminClaim)) else {
                throw ConfigurationError(
                    "oidc.adminClaim must be a claim and a value, such as groups=kedge-admins.")
            }
            settings.adminClaim = claim
        }
        return settings
    }

    private func issuers() throws -> [ProviderURL] {
        var issuers: [ProviderURL] = []
        for part in text(.oidcIssuers).split(separator: ",", omittingEmptySubsequences: false) {
            let word = part.trimmingCharacters(in: .whitespaces)
            guard let issuer = ProviderURL(word), !issuer.hasQuery else {
                throw ConfigurationError(
                    "oidc.issuers: \(ConfigurationFile.quoted(word)) is not an https address, such "
                        + "as https://login.example; http is accepted for loopback only.")
            }
            // An owner has the host of its issuer. With two issuers at one host, each could name
            // the owners of the other.
            guard !issuers.contains(where: { $0.host == issuer.host }) else {
                throw ConfigurationError(
                    "oidc.issuers names the host \(issuer.host) twice, so the owners of the "
                        + "issuers could not be told apart.")
            }
            issuers.append(issuer)
        }
        return issuers
    }

    /// Without an audience, a token for any other service of the issuer would be accepted.
    private func audience() throws -> String {
        let audience = text(.oidcAudience)
        guard !audience.isEmpty else {
            throw ConfigurationError(
                "oidc.audience is empty: set it to the audience that tokens for this service "
                    + "have, so that tokens for other services are refused.")
        }
        return audience
    }
}
