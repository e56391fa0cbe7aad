import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting
import Logging
import Testing

/// Requests with JSON Web Tokens. `KedgeJWTTests` has the tests of the tokens themselves.
@Suite(.timeLimit(.minutes(1))) struct JWTTests {
    private static let text = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl"
    private static let fields = [("Authorization", "Bearer \(text)")]

    private static func principal(_ scopes: Set<Scope>) -> Principal {
        Principal(
            owner: OwnerID("alice"), kind: .oidc, name: "alice", scopes: scopes)
    }

    /// Lends a server that accepts the token, with the rights of a user.
    private func withBearers(
        _ body: (RunningServer, ScriptedBearers) async throws -> Void
    ) async throws {
        let bearers = ScriptedBearers()
        bearers.answer(Self.text, .success(Self.principal(ScopeBundle.user.scopes)))
        let environment = try await ServerEnvironment(bearers: bearers) {
            $0.identityMode = .tokens
        }
        try await environment.withServer { try await body($0, bearers) }
    }

    @Test func `a token of a provider and an API token use the files of one owner`() async throws {
        try await withBearers { server, _ in
            let stored = try await server.ask(
                HTTPRequestBytes("POST", "/files", Self.fields, body: Array("text".utf8)))
            #expect(stored.status == 201)
            let file = try #require(stored.field("Location"))
            let alice = try await server.makeToken(owner: "alice")
            let bob = try await server.makeToken(owner: "bob")
            #expect(try await server.get(file, Self.fields).status == 200)
            #expect(try await server.get(file, alice.fields).status == 200)
            #expect(try await server.get(file, bob.fields).status == 404)
        }
    }

    @Test(arguments: BearerRefusal.allCases)
    func `a refused token has the answer of its reason`(refusal: BearerRefusal) async throws {
        try await withBearers { server, bearers in
            bearers.answer(Self.text, .failure(refusal))
            let answer = try await server.get("/files", Self.fields)
            let problem = try expectProblem(answer, refusal.code)
            #expect(problem.detail == refusal.sentence)
            if refusal == .unavailable {
                #expect(answer.field("Retry-After") != nil)
            } else {
                #expect(answer.field("WWW-Authenticate")?.contains("invalid_token") == true)
            }
            #expect(!String(decoding: answer.body, as: UTF8.self).contains("eyJ"))
        }
    }

    @Test func `a token without the scope of a route is forbidden`() async throws {
        try await withBearers { server, bearers in
            bearers.answer(Self.text, .success(Self.principal([.filesRead])))
            try expectProblem(try await server.get("/files", Self.fields), .forbidden)
            bearers.answer(Self.text, .success(Self.principal([.filesList])))
            #expect(try await server.get("/files", Self.fields).status == 200)
        }
    }

    @Test func `a service without providers refuses JSON Web Tokens`() async throws {
        try await withTokenServer { server in
            try expectProblem(try await server.get("/files", Self.fields), .unauthenticated)
        }
    }

    @Test func `a token that expires during a body does not cut it off`() async throws {
        try await withBearers { server, bearers in
            let connection = try await server.connect()
            let body = sampleBytes(200_000)
            var request = HTTPRequestBytes("POST", "/files", Self.fields, body: body)
            request = request.with([("Expect", "100-continue")])
            try await connection.send(request.head)
            // The token was checked before this answer.
            #expect(try await connection.answer().status == 100)
            bearers.answer(Self.text, .failure(.expired))
            try await connection.send(body)
            #expect(try await connection.answer().status == 201)
            try expectProblem(
                try await connection.ask(HTTPRequestBytes("GET", "/files", Self.fields)),
                .unauthenticated)
        }
    }

    @Test func `principal and owner are logged, the token is not`() async throws {
        try await withBearers { server, _ in
            _ = try await server.ask(
                .json("POST", "/uploads/sessions", #"{"fileName":"a","fileSize":1}"#, Self.fields))
            let line = try await eventually("the request is logged") {
                server.fixture.log.lines.first { $0.metadata["principal"] != nil }
            }
            #expect(line.metadata["principal"] == "oidc")
            #expect(line.metadata["owner"] == "alice")
            let all = server.fixture.log.lines.map { "\($0.metadata)" }.joined()
            #expect(!all.contains("eyJ"))
        }
    }

    @Test func `checked credentials are counted by kind and outcome`() async throws {
        try await withBearers { server, bearers in
            _ = try await server.get("/files", Self.fields)
            bearers.answer(Self.text, .failure(.expired))
            _ = try await server.get("/files", Self.fields)
            bearers.answer(Self.text, .failure(.unavailable))
            _ = try await server.get("/files", Self.fields)
            _ = try await server.get("/files")
            _ = try await server.get("/files", [("Authorization", "Bearer x")])
            // Public, so no credential is checked.
            _ = try await server.get("/healthz", Self.fields)
            let reader = try await server.makeToken([.metricsRead])
            let answer = try await server.get("/metrics", reader.fields)
            let lines = String(decoding: answer.body, as: UTF8.self).split(separator: "\n")
            for line in [
                #"kedge_auth_total{kind="oidc",outcome="accepted"} 1"#,
                #"kedge_auth_total{kind="oidc",outcome="refused"} 1"#,
                #"kedge_auth_total{kind="oidc",outcome="failed"} 1"#,
                #"kedge_auth_total{kind="none",outcome="refused"} 1"#,
                #"kedge_auth_total{kind="other",outcome="refused"} 1"#,
                #"kedge_auth_total{kind="token",outcome="accepted"} 1"#,
                #"kedge_auth_seconds_count{kind="oidc"} 3"#, "kedge_jwks_age_seconds 7",
            ] {
                #expect(lines.contains(Substring(line)), "\(line)")
            }
        }
    }

    @Test func `a service with providers needs no API token`() async throws {
        try await withBearers { server, _ in
            #expect(
                !server.fixture.log.lines.contains { $0.metadata["identity.mode"] != nil })
        }
    }
}
