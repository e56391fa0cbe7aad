import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting
import Logging
import Testing

/// Requests to a service with `identity.mode: tokens`.
@Suite(.timeLimit(.minutes(1))) struct TokenTests {
    @Test(arguments: ["Bearer", "bearer", "BEARER", "bEaReR"])
    func `the scheme of a token may have any case`(scheme: String) async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken()
            let answer = try await server.get(
                "/files", [("Authorization", "\(scheme) \(token.text)")])
            #expect(answer.status == 200)
        }
    }

    @Test func `a credential that is present and wrong is refused`() async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken()
            let text = token.text
            let unknown = APIToken.generate().text
            // The last character is part of the checksum.
            let mistyped = String(text.dropLast()) + (text.hasSuffix("0") ? "1" : "0")
            for value in [
                "Bearer", "Bearer ", "Bearer x", "Bearer \(unknown)", "Bearer \(mistyped)",
                "Basic \(text)", text, "Bearer \(text) x", "Bearer \(text),Bearer \(text)",
                "Bearer \(text.dropLast())", "Bearer kdg_\(text)", "", "Bearer=\(text)",
            ] {
                let answer = try await server.get("/files", [("Authorization", value)])
                #expect(answer.status == 401, "\(value)")
                #expect(answer.field("WWW-Authenticate")?.hasPrefix("Bearer ") == true)
                let body = String(decoding: answer.body, as: UTF8.self)
                #expect(!body.contains(text.dropFirst(17).prefix(20)))
            }
        }
    }

    @Test func `a token with the id of another one and its own secret is refused`() async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken()
            let impostor = APIToken.generate()
            let now = server.fixture.clock.now()
            // The row of the impostor's id has the digest of the other secret.
            try await server.tokens.insert(
                TokenRecord(
                    id: impostor.id, secretDigest: token.secretDigest, owner: OwnerID("alice"),
                    scopes: [.filesList], name: "test", createdBy: "test", createdAt: now))
            let answer = try await server.list(impostor)
            try expectProblem(answer, .unauthenticated)
        }
    }

    @Test func `two Authorization fields are refused`() async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken()
            try expectProblem(
                try await server.get("/files", token.fields + token.fields), .badRequest)
        }
    }

    @Test func `a token expires at its time`() async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken(expiresIn: .seconds(5))
            #expect(try await server.list(token).status == 200)
            server.fixture.clock.advance(by: .milliseconds(4999))
            #expect(try await server.list(token).status == 200)
            server.fixture.clock.advance(by: .milliseconds(1))
            try expectProblem(try await server.list(token), .unauthenticated)
        }
    }

    @Test func `a revoked token is refused ten seconds later at the latest`() async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken()
            #expect(try await server.list(token).status == 200)
            let isKnown = try await server.tokens.revokeToken(
                token.id, at: server.fixture.clock.now())
            #expect(isKnown)
            server.fixture.clock.advance(by: .seconds(10))
            try expectProblem(try await server.list(token), .unauthenticated)
        }
    }

    @Test func `a token that another node revokes is refused at once`() async throws {
        let (changes, change) = AsyncStream.makeStream(of: IdentityChange.self)
        let environment = try await ServerEnvironment(identityChanges: changes) {
            $0.identityMode = .tokens
        }
        try await environment.withServer { server in
            let (token, other) = (try await server.makeToken(), try await server.makeToken())
            #expect(try await server.list(token).status == 200)
            #expect(try await server.list(other).status == 200)
            // The clock stands still, so the rows stay fresh.
            for token in [token, other] {
                let isKnown = try await server.tokens.revokeToken(
                    token.id, at: server.fixture.clock.now())
                #expect(isKnown)
            }
            #expect(try await server.list(token).status == 200)
            change.yield(.token(token.id))
            let isRefused = try await eventually { try await server.list(token).status == 401 }
            #expect(isRefused)
            #expect(try await server.list(other).status == 200, "it was not reported")
        }
    }

    @Test func `a token made while the service runs is valid at once`() async throws {
        try await withTokenServer { server in
            let token = APIToken.generate()
            #expect(try await server.list(token).status == 401)
            let now = server.fixture.clock.now()
            try await server.tokens.insert(
                TokenRecord(
                    id: token.id, secretDigest: token.secretDigest, owner: OwnerID("alice"),
                    scopes: [.filesList], name: "test", createdBy: "test", createdAt: now))
            #expect(try await server.list(token).status == 200)
        }
    }

    @Test func `another owner's ids answer like unknown ones`() async throws {
        try await withTokenServer { server in
            let alice = try await server.makeToken(owner: "alice")
            let bob = try await server.makeToken(owner: "bob")
            let created = try await server.ask(
                .json(
                    "POST", "/uploads/sessions", #"{"fileName":"a.bin","fileSize":10}"#,
                    alice.fields))
            #expect(created.status == 201)
            let session = try #require(created.field("Location"))
            let stored = try await server.ask(
                HTTPRequestBytes(
                    "POST", "/files",
                    alice.fields + [
                        ("Content-Type", "text/plain"),
                        ("Content-Disposition", #"attachment; filename="a.txt""#),
                    ], body: Array("text".utf8)))
            #expect(stored.status == 201)
            let file = try #require(stored.field("Location"))
            let unknown = String(repeating: "0", count: 32)
            for (path, like) in [
                (session, "/uploads/sessions/\(unknown)"), (file, "/files/\(unknown)"),
                ("\(file)/meta", "/files/\(unknown)/meta"),
                ("\(file)/chunks", "/files/\(unknown)/chunks"),
            ] {
                #expect(try await server.get(path, alice.fields).status == 200, "\(path)")
                let foreign = try await server.get(path, bob.fields)
                let absent = try await server.get(like, bob.fields)
                #expect(foreign.status == 404, "\(path)")
                #expect(absent.status == 404)
                let differing: Set = ["date", "x-request-id"]
                let names = [foreign, absent].map { answer in
                    answer.fields.filter { !differing.contains($0.name.lowercased()) }
                        .map { "\($0.name): \($0.value)" }
                }
                #expect(names[0] == names[1], "\(path)")
                let problems = try [foreign, absent].map { try $0.decoded(ProblemDocument.self) }
                #expect(problems[0].code == problems[1].code)
                #expect(problems[0].detail == problems[1].detail)
            }
            #expect(
                try await server.ask(HTTPRequestBytes("DELETE", file, bob.fields)).status == 404)
            #expect(try await server.get(file, alice.fields).status == 200)
        }
    }

    @Test func `the last use is recorded at most once a minute`() async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken()
            let start = server.fixture.clock.now()
            for (seconds, expected) in [(0, 0), (59, 0), (60, 60)] as [(Int64, Int64)] {
                let now = server.fixture.clock.now()
                server.fixture.clock.advance(
                    by: start.advanced(by: .seconds(seconds)).duration(since: now))
                #expect(try await server.list(token).status == 200)
                let time = start.advanced(by: .seconds(expected))
                let isRecorded = try await eventually {
                    try await server.tokens.token(token.id)?.lastUsedAt == time
                }
                #expect(isRecorded, "\(seconds)")
            }
        }
    }

    @Test func `principal and owner are logged, the token is not`() async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken(owner: "alice")
            _ = try await server.ask(
                .json("POST", "/uploads/sessions", #"{"fileName":"a","fileSize":1}"#, token.fields))
            let line = try await eventually("the request is logged") {
                server.fixture.log.lines.first { $0.metadata["token.id"] != nil }
            }
            #expect(line.metadata["principal"] == "token")
            #expect(line.metadata["owner"] == "alice")
            let secret = token.text.dropFirst(17)
            let all = server.fixture.log.lines.map { "\($0.metadata)" }.joined()
            #expect(!all.contains(secret))
        }
    }

    @Test func `a start without a valid token logs a warning`() async throws {
        let environment = try await ServerEnvironment { $0.identityMode = .tokens }
        func warnings() -> Int {
            environment.log.lines.count {
                $0.level == .warning && $0.metadata["identity.mode"] == "tokens"
            }
        }
        try await environment.withServer { server in
            #expect(warnings() == 1)
            _ = try await server.makeToken(expiresIn: .seconds(60))
        }
        try await environment.withServer { _ in #expect(warnings() == 1) }
        environment.clock.advance(by: .seconds(60))
        try await environment.withServer { _ in #expect(warnings() == 2) }
    }

    @Test func `without identities a token is ignored`() async throws {
        try await SharedServer.use { server in
            for value in ["Bearer x", "Basic x", ""] {
                let answer = try await server.get("/files", [("Authorization", value)])
                #expect(answer.status == 200)
            }
        }
    }
}
