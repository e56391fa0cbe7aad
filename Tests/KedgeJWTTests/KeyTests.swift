import HTTPTypes
import KedgeIdentity
import KedgeJWT
import KedgeTesting
import Logging
import Testing

/// The keys of issuers over time.
@Suite(.timeLimit(.minutes(1))) struct KeyTests {
    private let environment: JWTEnvironment

    init() throws { environment = try JWTEnvironment() }

    @Test func `keys are fetched once for many tokens`() async throws {
        for number in 0..<5 {
            let token = try await environment.token(["sub": "\"user-\(number)\""])
            _ = try await environment.principal(token)
        }
        #expect(
            environment.provider.asked == [
                JWTEnvironment.issuer + "/.well-known/openid-configuration",
                JWTEnvironment.keyAddress,
            ])
    }

    @Test func `a new key counts at once, an old one after the next fetch`() async throws {
        _ = try await environment.principal(try await environment.token())
        environment.clock.advance(by: .seconds(31))
        environment.serve(TestKey.p256.published("b"))
        let new = try await environment.token(
            header: ["kid": #""b""#], key: .p256, algorithm: "ES256")
        _ = try await environment.principal(new)
        await environment.expect(.unknownKey, try await environment.token(["jti": #""2""#]))
    }

    @Test func `a verified token counts for a minute after its key is gone`() async throws {
        let token = try await environment.token()
        _ = try await environment.principal(token)
        environment.clock.advance(by: .seconds(31))
        environment.serve(TestKey.p256.published("b"))
        let new = try await environment.token(
            header: ["kid": #""b""#], key: .p256, algorithm: "ES256")
        _ = try await environment.principal(new)
        _ = try await environment.principal(token)
        environment.clock.advance(by: .seconds(29))
        await environment.expect(.unknownKey, token)
    }

    @Test func `unknown keys cause one fetch in 30 seconds`() async throws {
        _ = try await environment.principal(try await environment.token())
        let before = environment.provider.asked.count
        environment.clock.advance(by: .seconds(30))
        for number in 0..<10 {
            let token = try await environment.token(header: ["kid": "\"x\(number)\""])
            await environment.expect(.unknownKey, token)
        }
        #expect(environment.provider.asked.count == before + 2)
        environment.clock.advance(by: .seconds(29))
        await environment.expect(
            .unknownKey, try await environment.token(header: ["kid": #""y""#]))
        #expect(environment.provider.asked.count == before + 2)
    }

    @Test func `tokens that arrive together wait for one fetch`() async throws {
        let gate = Gate()
        environment.provider.hold(with: gate)
        var tokens: [String] = []
        for number in 0..<20 {
            tokens.append(try await environment.token(["sub": "\"user-\(number)\""]))
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for token in tokens {
                group.addTask { [environment] in _ = try await environment.principal(token) }
            }
            await gate.waitForArrival()
            gate.open()
            try await group.waitForAll()
        }
        #expect(environment.provider.asked.count == 2)
    }

    @Test func `an unknown key never falls back to another one`() async throws {
        environment.serve(TestKey.rsa.published("a"), TestKey.p256.published("b"))
        for id in ["c", "", "A", "a ", "0 RS256"] {
            let token = try await environment.token(header: ["kid": TokenText.quoted(id)])
            await environment.expect(.unknownKey, token, id)
        }
        let confused = try await environment.token(header: ["kid": #""b""#])
        await environment.expect(.algorithmNotAccepted, confused)
    }

    @Test func `a token without a key id needs an issuer with one key`() async throws {
        let token = try await environment.token(header: ["kid": nil])
        _ = try await environment.principal(token)
        let other = try JWTEnvironment()
        other.serve(TestKey.rsa.published("a"), TestKey.p256.published("b"))
        await other.expect(.unknownKey, try await other.token(header: ["kid": nil]))
    }

    @Test func `keys without an id are used only alone`() async throws {
        environment.serve(TestKey.rsa.published(nil))
        _ = try await environment.principal(try await environment.token(header: ["kid": nil]))
        await environment.expect(.unknownKey, try await environment.token())
    }

    @Test func `keys that cannot be used do not hide the others`() async throws {
        environment.serve(
            #"{"kty":"XYZ","kid":"x"}"#, #"{"kty":1}"#, "null", "7", #""text""#,
            #"{"kty":"RSA","kid":"n"}"#, #"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#,
            TestKey.weak.published("weak"), TestKey.rsa.published("enc", ["use": "enc"]),
            TestKey.rsa.published("oaep", ["alg": "RSA-OAEP"]),
            TestKey.rsa.published("a", ["use": "sig"]))
        _ = try await environment.principal(try await environment.token(header: ["kid": nil]))
        for id in ["weak", "enc", "oaep", "n", "x"] {
            let token = try await environment.token(header: ["kid": TokenText.quoted(id)])
            await environment.expect(.unknownKey, token, id)
        }
    }

    @Test func `keys serve for a day while the issuer is down`() async throws {
        _ = try await environment.principal(try await environment.token())
        environment.provider.stop()
        environment.clock.advance(by: .seconds(86_400))
        _ = try await environment.principal(try await environment.token())
        environment.clock.advance(by: .seconds(3600))
        await environment.expect(.unavailable, try await environment.token())
        #expect(await environment.verifier.keyAge() == .seconds(90_000))
        #expect(environment.log.lines.contains { $0.level == .warning })
        environment.clock.advance(by: .seconds(30))
        environment.serve(TestKey.rsa.published("a"))
        _ = try await environment.principal(try await environment.token())
        #expect(await environment.verifier.keyAge() == .zero)
    }

    @Test func `a clock that goes back does not lengthen the life of keys`() async throws {
        _ = try await environment.principal(try await environment.token())
        environment.provider.stop()
        environment.clock.advance(by: .seconds(-100_000))
        #expect(await environment.verifier.keyAge() == .zero)
        environment.clock.advance(by: .seconds(86_401))
        await environment.expect(.unavailable, try await environment.token())
    }

    @Test func `without any keys the answer is temporary`() async throws {
        environment.provider.stop()
        await environment.expect(.unavailable, try await environment.token())
        #expect(await environment.verifier.keyAge() == nil)
    }

    @Test(arguments: [
        JWTEnvironment.issuer + "/", "https://login.example", "HTTPS://login.example/realms/a",
    ])
    func `a discovery document of another issuer is refused`(issuer: String) async throws {
        environment.serve(TestKey.rsa.published("a"), issuer: issuer)
        await environment.expect(.unavailable, try await environment.token())
        #expect(environment.provider.asked.count == 1)
    }

    @Test(arguments: [
        "http://login.example/keys", "http://localhost/keys", "file:///etc/passwd", "",
        "https://user@login.example/keys",
    ])
    func `the address of the keys must be an https one`(address: String) async throws {
        environment.serve(TestKey.rsa.published("a"), address: address)
        await environment.expect(.unavailable, try await environment.token())
        #expect(environment.provider.asked.count == 1)
    }

    @Test(arguments: [
        "", "[]", "{}", "null", #"{"keys":{}}"#, #"{"keys":[]}"#, "{\"keys\":[", "<html>",
    ])
    func `a broken document does not replace the keys`(body: String) async throws {
        _ = try await environment.principal(try await environment.token())
        environment.clock.advance(by: .seconds(31))
        environment.provider.serve(JWTEnvironment.keyAddress, .init(body: body))
        await environment.expect(
            .unknownKey, try await environment.token(header: ["kid": #""b""#]))
        _ = try await environment.principal(try await environment.token(["jti": #""2""#]))
    }

    @Test func `a document has at most a mebibyte`() async throws {
        let keys = "{\"keys\":[\(TestKey.rsa.published("a"))]}"
        let room = (1 << 20) - keys.utf8.count
        environment.provider.serve(
            JWTEnvironment.keyAddress,
            .init(body: keys + String(repeating: " ", count: room + 1)))
        await environment.expect(.unavailable, try await environment.token())
        environment.clock.advance(by: .seconds(30))
        environment.provider.serve(
            JWTEnvironment.keyAddress, .init(body: keys + String(repeating: " ", count: room)))
        _ = try await environment.principal(try await environment.token())
    }

    @Test(arguments: [201, 301, 302, 307, 404, 500])
    func `only an answer of status 200 has keys`(status: Int) async throws {
        environment.provider.serve(
            JWTEnvironment.keyAddress,
            .init(
                body: #"{"keys":[\#(TestKey.rsa.published("a"))]}"#, status: status,
                fields: [.location: "https://evil.example/keys"]))
        await environment.expect(.unavailable, try await environment.token())
        #expect(environment.provider.asked.count == 2)
    }

    @Test(arguments: [
        ("max-age=300", 300), ("public, MAX-AGE=1200", 1200), ("max-age=0", 60),
        ("max-age=59", 60), ("max-age=86400", 3600), ("max-age=99999999999999999999", 600),
        ("", 600), ("no-store", 600), ("max-age=x", 600), ("s-maxage=9", 600),
    ])
    func `keys are kept between a minute and an hour`(field: String, seconds: Int) {
        #expect(CacheLifetime.read(field) == .seconds(seconds))
    }
}
