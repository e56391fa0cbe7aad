internal import KedgeHash
package import KedgeIdentity
package import KedgeModel
package import KedgeTransport
package import Logging

/// Verifies JSON Web Tokens (RFC 7519) of OpenID providers, by the advice of RFC 8725.
package final class JWTVerifier: BearerVerifier {
    private let rules: ClaimRules
    private let issuers: [IssuerKeys]
    private let now: @Sendable () -> Timestamp
    private let verified = VerifiedTokens()

    /// - Parameters:
    ///   - transport: Carries the requests to the issuers. It must not follow redirects.
    ///   - now: The clock with which the times of tokens are compared.
    package init(
        _ settings: OpenIDSettings, transport: any HTTPTransport,
        now: @escaping @Sendable () -> Timestamp, logger: Logger
    ) {
        rules = ClaimRules(settings: settings)
        issuers = settings.issuers.map { issuer in
            IssuerKeys(
                KeyFetch(issuer: issuer, transport: transport), now: now, logger: logger)
        }
        self.now = now
    }

    /// Fetches the keys of all issuers again and again until the task is canceled.
    package func run() async {
        await withTaskGroup(of: Void.self) { group in
            for issuer in issuers {
                group.addTask { await Self.refreshRegularly(issuer) }
            }
        }
    }

    package func principal(ofJWT text: String) async throws(BearerRefusal) -> Principal {
        guard text.utf8.count <= UnverifiedToken.maxByteCount else {
            throw BearerRefusal.tooLong
        }
        let digest = SHA256Hasher.digest(of: Array(text.utf8))
        if let principal = verified.principal(of: digest, at: now()) { return principal }
        let token = try UnverifiedToken(text)
        guard case .text(let name)? = token.claims["iss"],
            let issuer = issuers.first(where: { $0.issuer.text.hasBytes(of: name) })
        else { throw BearerRefusal.unknownIssuer }
        // Before the claims: what they say is for holders of a real token.
        try await issuer.verify(token)
        let time = now()
        let result = try rules.principal(token.claims, of: issuer.issuer, at: time)
        verified.insert(digest, result.principal, expiresAt: result.expiresAt, at: time)
        return result.principal
    }

    package func keyAge() async -> Duration? {
        var oldest: Duration?
        for issuer in issuers {
            guard let age = await issuer.age() else { continue }
            oldest = max(oldest ?? .zero, age)
        }
        return oldest
    }

    private static func refreshRegularly(_ issuer: IssuerKeys) async {
        while !Task.isCancelled {
            await issuer.refresh()
            // Canceled: the loop ends.
            try? await Task.sleep(for: issuer.interval)
        }
    }
}
