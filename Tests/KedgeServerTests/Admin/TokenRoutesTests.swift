import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// `GET /tokens`, `POST /tokens` and `DELETE /tokens/{tokenId}`.
@Suite(.timeLimit(.minutes(1))) struct TokenRoutesTests {
    private func create(
        _ body: String, _ admin: APIToken, on server: RunningServer
    ) async throws -> HTTPAnswer {
        try await server.ask(.json("POST", "/tokens", body, admin.fields))
    }

    @Test func `an administrator makes a token for any owner, which is shown once`() async throws {
        try await withTokenServer { server in
            let admin = try await server.makeToken([.admin], owner: "ops")
            let answer = try await create(
                #"{"name":"laptop","owner":"alice","scopes":["reader","uploads:write"]}"#, admin,
                on: server)
            #expect(answer.status == 201)
            #expect(answer.field("Cache-Control") == "no-store")
            let made = try answer.decoded(TokenDescription.self)
            #expect(made.owner == "alice")
            #expect(made.scopes == ["files:list", "files:read", "uploads:write"])
            #expect(made.createdBy == "token:\(admin.id)")
            #expect(made.expiresAt == nil)
            let text = try #require(made.token)
            let token = try APIToken.parse(text)
            #expect(token.id.text == made.tokenId)
            #expect(try await server.list(token).status == 200)

            let listed = try await server.get("/tokens", admin.fields)
            #expect(listed.status == 200)
            let list = try listed.decoded(TokenList.self)
            #expect(Set(list.tokens.map(\.tokenId)) == [admin.id.text, token.id.text])
            #expect(!list.hasMore)
            #expect(list.tokens.allSatisfy { $0.token == nil })
            let secret = text.dropFirst(17)
            #expect(!String(decoding: listed.body, as: UTF8.self).contains(secret))
            let log = server.fixture.log.lines.map { "\($0.metadata)" }.joined()
            #expect(!log.contains(secret))
        }
    }

    @Test func `a token expires after the time that its creation names`() async throws {
        try await withTokenServer { server in
            let admin = try await server.makeToken([.admin])
            let answer = try await create(
                #"{"name":"x","owner":"bob","scopes":["user"],"expiresInSeconds":60}"#, admin,
                on: server)
            let made = try answer.decoded(TokenDescription.self)
            let token = try APIToken.parse(try #require(made.token))
            #expect(made.expiresAt == made.createdAt.advanced(by: .seconds(60)))
            #expect(try await server.list(token).status == 200)
            server.fixture.clock.advance(by: .seconds(60))
            try expectProblem(try await server.list(token), .unauthenticated)
        }
    }

    @Test func `a revoked token is refused at once`() async throws {
        try await withTokenServer { server in
            let admin = try await server.makeToken([.admin])
            let token = try await server.makeToken()
            #expect(try await server.list(token).status == 200)
            for _ in 0..<2 {
                let revoked = try await server.ask(
                    HTTPRequestBytes("DELETE", "/tokens/\(token.id)", admin.fields))
                #expect(revoked.status == 204)
                try expectProblem(try await server.list(token), .unauthenticated)
            }
            let unknown = try await server.ask(
                HTTPRequestBytes("DELETE", "/tokens/\(TokenID.random())", admin.fields))
            try expectProblem(unknown, .notFound)
        }
    }

    @Test(arguments: [
        #"{"name":"","owner":"alice","scopes":["user"]}"#,
        #"{"name":"a\u0007","owner":"alice","scopes":["user"]}"#,
        #"{"name":"x","owner":"","scopes":["user"]}"#,
        #"{"name":"x","owner":" alice","scopes":["user"]}"#,
        #"{"name":"x","owner":"jürgen","scopes":["user"]}"#,
        #"{"name":"x","owner":"alice","scopes":[]}"#,
        #"{"name":"x","owner":"alice","scopes":["everything"]}"#,
        #"{"name":"x","owner":"alice","scopes":["user",""]}"#,
        #"{"name":"x","owner":"alice","scopes":"user"}"#,
        #"{"name":"x","owner":"alice","scopes":["user"],"expiresInSeconds":0}"#,
        #"{"name":"x","owner":"alice","scopes":["user"],"expiresInSeconds":9223372036854775807}"#,
        #"{"name":"x","owner":"alice","scopes":["user"],"expiresIn":60}"#,
        #"{"owner":"alice","scopes":["user"]}"#, "[]", "",
    ])
    func `values that make no token are refused`(body: String) async throws {
        try await withTokenServer { server in
            let admin = try await server.makeToken([.admin])
            try expectProblem(try await create(body, admin, on: server), .badRequest)
            #expect(try await server.tokens.tokens(of: nil, limit: 10).count == 1)
        }
    }

    @Test func `tokens are listed by owner and up to a limit`() async throws {
        try await withTokenServer { server in
            let admin = try await server.makeToken([.admin], owner: "ops")
            for owner in ["alice", "alice", "bob"] {
                server.fixture.clock.advance(by: .seconds(1))
                _ = try await server.makeToken(owner: owner)
            }
            func list(_ query: String) async throws -> TokenList {
                try await server.get("/tokens\(query)", admin.fields).decoded(TokenList.self)
            }
            #expect(try await list("").tokens.map(\.owner) == ["bob", "alice", "alice", "ops"])
            #expect(try await list("?owner=alice").tokens.count == 2)
            #expect(try await list("?owner=carol").tokens == [])
            let first = try await list("?limit=2")
            #expect(first.tokens.map(\.owner) == ["bob", "alice"])
            #expect(first.hasMore)
            for query in ["?limit=0", "?limit=x", "?limit=10001", "?owner=", "?owner=%20a"] {
                try expectProblem(
                    try await server.get("/tokens\(query)", admin.fields), .badRequest)
            }
        }
    }

    @Test func `the anonymous owner manages no tokens`() async throws {
        try await withServer { server in
            try expectProblem(try await server.get("/tokens"), .forbidden)
            try expectProblem(
                try await server.ask(
                    .json(
                        "POST", "/tokens", #"{"name":"x","owner":"alice","scopes":["admin"]}"#)),
                .forbidden)
            #expect(try await server.tokens.tokens(of: nil, limit: 10) == [])
        }
    }
}
