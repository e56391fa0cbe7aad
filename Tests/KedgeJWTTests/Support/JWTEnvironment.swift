import HTTPTypes
import KedgeIdentity
import KedgeJWT
import KedgeModel
import KedgeTesting
import Testing

/// A verifier with an issuer, whose documents and clock a test changes.
struct JWTEnvironment: Sendable {
    static let issuer = "https://login.example/realms/a"
    static let keyAddress = "https://login.example/realms/a/keys"

    let clock = ManualClock()
    let provider = FakeIssuer()
    let log = CapturedLog()
    let verifier: JWTVerifier

    /// Serves an RSA key with the id `a`.
    init(_ configure: (inout OpenIDSettings) -> Void = { _ in }) throws {
        let issuer = try #require(ProviderURL(Self.issuer))
        var settings = OpenIDSettings(issuers: [issuer], audience: "kedge")
        configure(&settings)
        let clock = self.clock
        verifier = JWTVerifier(
            settings, transport: provider, now: { clock.now() }, logger: log.logger())
        serve(TestKey.rsa.published("a"))
    }

    /// Serves keys, and the discovery document that names their address.
    func serve(
        _ keys: String..., issuer: String = Self.issuer,
        address: String = Self.keyAddress,
        fields: HTTPFields = [:]
    ) {
        let discovery = TokenText.object([
            "issuer": TokenText.quoted(issuer), "jwks_uri": TokenText.quoted(address),
        ])
        provider.serve(
            Self.issuer + "/.well-known/openid-configuration", .init(body: discovery))
        provider.serve(
            address,
            .init(body: "{\"keys\":[\(keys.joined(separator: ","))]}", fields: fields))
    }

    /// The seconds since 1970 at the environment's clock, and some more.
    func seconds(_ more: Int64 = 0) -> String {
        "\(clock.now().millisecondsSinceEpoch / 1000 + more)"
    }

    /// Claims that are accepted for an hour, changed by the given ones. Nil removes a claim; other
    /// values are JSON.
    func claims(_ changes: [String: String?] = [:]) -> String {
        var claims: [String: String] = [
            "iss": TokenText.quoted(Self.issuer), "aud": #""kedge""#, "sub": #""alice""#,
            "exp": seconds(3600), "iat": seconds(), "scope": #""openid uploader""#,
        ]
        for (name, value) in changes { claims[name] = value }
        return TokenText.object(claims)
    }

    /// Makes a token. Changes of header and claims are as in ``claims(_:)``.
    func token(
        _ changes: [String: String?] = [:], header: [String: String?] = [:],
        key: TestKey = .rsa, algorithm: String = "RS256"
    ) async throws -> String {
        var members: [String: String] = ["alg": TokenText.quoted(algorithm), "kid": #""a""#]
        for (name, value) in header { members[name] = value }
        let signed = TokenText.signed(TokenText.object(members), claims(changes))
        return TokenText.token(signed, try await key.sign(signed, algorithm))
    }

    func principal(_ token: String) async throws -> Principal {
        try await verifier.principal(ofJWT: token)
    }

    /// Expects that a token is refused for a reason.
    func expect(
        _ refusal: BearerRefusal, _ token: String, _ note: String = "",
        at location: SourceLocation = #_sourceLocation
    ) async {
        await #expect(throws: refusal, "\(note)", sourceLocation: location) {
            try await verifier.principal(ofJWT: token)
        }
    }
}
