import KedgeIdentity
import KedgeJWT
import KedgeModel
import KedgeTesting
import Testing

/// A verifier that fetches keys with libcurl from a server on loopback.
@Suite(.timeLimit(.minutes(2))) struct IssuerExchangeTests {
    /// Lends a verifier whose issuer answers each path with a complete response.
    private func withIssuer(
        _ answer: @escaping @Sendable (_ path: String, _ base: String) -> String,
        _ body: (JWTVerifier, _ issuer: String) async throws -> Void
    ) async throws {
        let server = try ScriptedServer()
        let base = server.url("")
        server.start { connection in
            while let request = connection.readRequest() {
                connection.send(answer(request.path, base))
            }
        }
        let issuer = try #require(ProviderURL(base))
        let clock = ManualClock()
        let verifier = JWTVerifier(
            OpenIDSettings(issuers: [issuer], audience: "kedge"), now: { clock.now() },
            logger: CapturedLog().logger())
        try await body(verifier, base)
        withExtendedLifetime(server) {}
    }

    private static func response(_ body: String, _ first: String = "200 OK") -> String {
        "HTTP/1.1 \(first)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    private static func discovery(_ base: String) -> String {
        response(#"{"issuer":"\#(base)","jwks_uri":"\#(base)/keys"}"#)
    }

    private func token(of issuer: String) async throws -> String {
        try await JWTEnvironment().token(["iss": TokenText.quoted(issuer)])
    }

    @Test func `keys are fetched from a real server`() async throws {
        try await withIssuer { path, base in
            path == "/keys"
                ? Self.response("{\"keys\":[\(TestKey.rsa.published("a"))]}")
                : Self.discovery(base)
        } _: { verifier, issuer in
            let principal = try await verifier.principal(ofJWT: try await token(of: issuer))
            #expect(principal.owner.text == "oidc:127.0.0.1:alice")
        }
    }

    @Test func `the regular fetch begins at once and ends with its task`() async throws {
        try await withIssuer { path, base in
            path == "/keys"
                ? Self.response("{\"keys\":[\(TestKey.rsa.published("a"))]}")
                : Self.discovery(base)
        } _: { verifier, _ in
            // Awaited below.
            let task = Task { await verifier.run() }
            let hasKeys = try await eventually { await verifier.keyAge() != nil }
            #expect(hasKeys)
            task.cancel()
            await task.value
        }
    }

    @Test func `a redirect is not followed`() async throws {
        let followed = Shared(0)
        try await withIssuer { path, base in
            switch path {
            case "/keys":
                return "HTTP/1.1 302 Found\r\nLocation: \(base)/elsewhere\r\n"
                    + "Content-Length: 0\r\n\r\n"
            case "/elsewhere":
                _ = followed.increment()
                return Self.response("{\"keys\":[\(TestKey.rsa.published("a"))]}")
            default: return Self.discovery(base)
            }
        } _: { verifier, issuer in
            let token = try await token(of: issuer)
            await #expect(throws: BearerRefusal.unavailable) {
                try await verifier.principal(ofJWT: token)
            }
        }
        #expect(followed.value == 0)
    }

    @Test func `an issuer that sends without end is cut off`() async throws {
        try await withIssuer { path, base in
            guard path == "/keys" else { return Self.discovery(base) }
            return "HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n"
                + String(repeating: " ", count: 4 << 20)
        } _: { verifier, issuer in
            let token = try await token(of: issuer)
            await #expect(throws: BearerRefusal.unavailable) {
                try await verifier.principal(ofJWT: token)
            }
        }
    }

    @Test func `an issuer that does not answer delays a request by seconds`() async throws {
        let start = ContinuousClock.now
        try await withIssuer { path, base in
            path == "/keys"
                ? "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n" : Self.discovery(base)
        } _: { verifier, issuer in
            let token = try await token(of: issuer)
            await #expect(throws: BearerRefusal.unavailable) {
                try await verifier.principal(ofJWT: token)
            }
        }
        #expect(start.duration(to: .now) < .seconds(30))
    }
}
