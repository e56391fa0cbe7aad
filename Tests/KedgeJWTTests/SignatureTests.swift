import KedgeIdentity
import KedgeModel
import KedgeSecrets
import Testing

/// Signatures, algorithms and headers of tokens.
struct SignatureTests {
    private let environment: JWTEnvironment

    init() throws { environment = try JWTEnvironment() }

    @Test(
        arguments: [
            (TestKey.rsa, "RS256"), (.rsa, "RS384"), (.rsa, "RS512"), (.rsa, "PS256"),
            (.rsa, "PS384"), (.rsa, "PS512"), (.p256, "ES256"), (.p384, "ES384"),
            (.p521, "ES512"), (.ed25519, "EdDSA"),
        ] as [(TestKey, String)])
    func `a token with an accepted algorithm gives its principal`(
        key: TestKey, algorithm: String
    ) async throws {
        for published in [key.published("a"), key.published("a", ["alg": algorithm])] {
            let environment = try JWTEnvironment()
            environment.serve(published)
            let token = try await environment.token(key: key, algorithm: algorithm)
            let principal = try await environment.principal(token)
            #expect(principal.owner.text == "oidc:login.example:alice")
            #expect(principal.kind == .oidc)
            #expect(principal.scopes == ScopeBundle.uploader.scopes)
        }
    }

    @Test func `one key without an algorithm verifies tokens of several`() async throws {
        for algorithm in ["RS256", "PS256", "RS512", "RS256"] {
            let token = try await environment.token(algorithm: algorithm)
            _ = try await environment.principal(token)
            // Another padding or hash than the header says.
            let other = algorithm == "RS256" ? "PS256" : "RS256"
            let mixed = try await environment.token(
                header: ["alg": TokenText.quoted(other)], algorithm: algorithm)
            await environment.expect(.wrongSignature, mixed)
        }
    }

    @Test func `a key with an algorithm verifies no other`() async throws {
        environment.serve(TestKey.rsa.published("a", ["alg": "RS256"]))
        _ = try await environment.principal(try await environment.token())
        for algorithm in ["PS256", "RS384", "RS512"] {
            await environment.expect(
                .algorithmNotAccepted, try await environment.token(algorithm: algorithm))
        }
    }

    @Test(arguments: ["none", "None", "NONE", "HS256", "HS384", "HS512", "ES256K", "RSA-OAEP", ""])
    func `an algorithm that is not on the list is refused`(name: String) async throws {
        let signed = TokenText.signed(
            TokenText.object(["alg": TokenText.quoted(name), "kid": #""a""#]),
            environment.claims())
        for signature in [[], try await TestKey.rsa.sign(signed, "RS256")] {
            await environment.expect(
                .algorithmNotAccepted, TokenText.token(signed, signature))
        }
    }

    @Test func `a public key is no shared secret`() async throws {
        let signed = TokenText.signed(
            #"{"alg":"HS256","kid":"a"}"#, environment.claims())
        for secret in [TestKey.rsa.members["n"] ?? "", TestKey.rsa.published("a")] {
            let signature = try await TestKey.sign(signed, secret: secret)
            await environment.expect(.algorithmNotAccepted, TokenText.token(signed, signature))
        }
    }

    @Test func `a secret among the keys is never used`() async throws {
        let secret =
            #"{"kty":"oct","kid":"s","k":"YSBzZWNyZXQgb2YgdGhpcnR5LXR3byBieXRlcy4uLi4","alg":"HS256"}"#
        environment.serve(secret, TestKey.rsa.published("a"))
        let signed = TokenText.signed(
            #"{"alg":"HS256","kid":"s"}"#, environment.claims())
        let signature = try await TestKey.sign(signed, secret: "a secret of thirty-two bytes....")
        await environment.expect(.algorithmNotAccepted, TokenText.token(signed, signature))
        let named = try await environment.token(header: ["kid": #""s""#])
        await environment.expect(.unknownKey, named)
        _ = try await environment.principal(try await environment.token())
    }

    @Test(arguments: [
        ["crit": #"["exp"]"#], ["jku": #""https://evil.example/keys""#],
        ["x5u": #""https://evil.example/cert""#], ["x5c": #"["MIIB"]"#],
        ["jwk": TestKey.rsa.published("a")], ["typ": #""logout+jwt""#], ["typ": "1"],
        ["b64": "false", "crit": #"["b64"]"#],
    ])
    func `a header that names keys or extensions is refused`(
        members: [String: String]
    ) async throws {
        let token = try await environment.token(header: members)
        await environment.expect(.headerNotAccepted, token)
    }

    @Test(arguments: ["JWT", "jwt", "at+jwt", "application/at+jwt"])
    func `a token may name its kind`(kind: String) async throws {
        let token = try await environment.token(header: ["typ": TokenText.quoted(kind)])
        _ = try await environment.principal(token)
    }

    @Test func `each changed byte makes the signature wrong`() async throws {
        let token = try await environment.token()
        let parts = token.split(separator: ".").map(String.init)
        var signature = try #require(Base64URL.decode(parts[2]))
        for index in stride(from: 0, to: signature.count, by: 17) {
            signature[index] ^= 1
            let changed = "\(parts[0]).\(parts[1]).\(Base64URL.encode(signature))"
            await environment.expect(.wrongSignature, changed)
            signature[index] ^= 1
        }
        let richer = TokenText.signed(
            #"{"alg":"RS256","kid":"a"}"#, environment.claims(["scope": #""admin""#]))
        await environment.expect(.wrongSignature, "\(richer).\(parts[2])")
        for count in [0, 1, 255] {
            let short = Base64URL.encode(Array(signature.prefix(count)))
            await environment.expect(.wrongSignature, "\(parts[0]).\(parts[1]).\(short)")
        }
    }

    @Test(arguments: ["ES256", "ES384", "ES512", "EdDSA"])
    func `a signature of zeros is wrong`(algorithm: String) async throws {
        let keys: [String: TestKey] = [
            "ES256": .p256, "ES384": .p384, "ES512": .p521, "EdDSA": .ed25519,
        ]
        environment.serve(try #require(keys[algorithm]).published("a"))
        let signed = TokenText.signed(
            TokenText.object(["alg": TokenText.quoted(algorithm), "kid": #""a""#]),
            environment.claims())
        for count in [0, 63, 64, 96, 132] {
            let token = TokenText.token(signed, Array(repeating: 0, count: count))
            await environment.expect(.wrongSignature, token)
        }
    }

    @Test func `other texts are malformed`() async throws {
        let token = try await environment.token()
        let parts = token.split(separator: ".").map(String.init)
        for text in [
            "", "eyJ", "eyJ.", "eyJ..", "eyJ...", token + ".", token + ".x", token + "=",
            "\(parts[0]).\(parts[1])", "\(parts[0])..\(parts[2])", ".\(parts[1]).\(parts[2])",
            "\(parts[0]).\(Base64URL.encode(Array("[]".utf8))).\(parts[2])",
            "\(parts[0]).\(parts[1]).\(parts[2])\u{301}", token + " ",
        ] {
            await environment.expect(.malformed, text, text)
        }
        let numbered = try await environment.token(header: ["kid": "1"])
        await environment.expect(.malformed, numbered)
    }

    @Test func `a token has at most 8 KiB`() async throws {
        let filled = try await environment.token([
            "x": TokenText.quoted(String(repeating: "x", count: 5000))
        ])
        #expect(filled.utf8.count < 8192)
        _ = try await environment.principal(filled)
        let long = try await environment.token([
            "x": TokenText.quoted(String(repeating: "x", count: 6000))
        ])
        #expect(long.utf8.count > 8192)
        await environment.expect(.tooLong, long)
    }

    @Test func `deeply nested claims are refused`() async throws {
        let nested = String(repeating: "[", count: 2500) + String(repeating: "]", count: 2500)
        let token = try await environment.token(["x": nested])
        await environment.expect(.malformed, token)
    }
}
