import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// `GET /owners`, `GET /owners/{owner}` and `PUT /owners/{owner}`.
@Suite(.timeLimit(.minutes(1))) struct OwnerRoutesTests {
    private func change(
        _ owner: String, _ body: String, _ admin: APIToken, on server: RunningServer
    ) async throws -> HTTPAnswer {
        try await server.ask(.json("PUT", "/owners/\(owner)", body, admin.fields))
    }

    @Test func `what is absent in a change stays as it is`() async throws {
        try await withTokenServer { server in
            let admin = try await server.makeToken([.admin])
            let limited = try await change(
                "bob", #"{"limits":{"maxStoredBytes":1000,"maxOpenSessions":0}}"#, admin,
                on: server
            ).decoded(OwnerDescription.self)
            #expect(limited.owner == "bob")
            #expect(limited.limits == OwnerLimitValues(maxStoredBytes: 1000, maxOpenSessions: 0))
            #expect(!limited.isBlocked)
            let blocked = try await change("bob", #"{"isBlocked":true}"#, admin, on: server)
                .decoded(OwnerDescription.self)
            #expect(blocked.limits == limited.limits)
            #expect(blocked.isBlocked)
            let reset = try await change(
                "bob", #"{"limits":{"maxFileBytes":5}}"#, admin, on: server
            ).decoded(OwnerDescription.self)
            #expect(reset.limits == OwnerLimitValues(maxFileBytes: 5))
            #expect(reset.isBlocked)
            let shown = try await server.get("/owners/bob", admin.fields)
                .decoded(OwnerDescription.self)
            #expect(shown == reset)
            let record = try #require(try await server.owners.owner(OwnerID("bob")))
            #expect(record.limits == OwnerLimits(maxFileBytes: 5))
        }
    }

    @Test func `the use of an owner is shown`() async throws {
        try await withTokenServer { server in
            let admin = try await server.makeToken([.admin], owner: "ops")
            let alice = try await server.makeToken(owner: "alice")
            let created = try await server.ask(
                .json(
                    "POST", "/uploads/sessions", #"{"fileName":"a","fileSize":10}"#, alice.fields))
            #expect(created.status == 201)
            let shown = try await server.get("/owners/alice", admin.fields)
                .decoded(OwnerDescription.self)
            #expect(shown.openSessions == 1)
            #expect(shown.reservedBytes == 10)
            #expect(shown.storedBytes == 0)
        }
    }

    @Test func `owners are listed by name, page after page`() async throws {
        try await withTokenServer { server in
            let admin = try await server.makeToken([.admin])
            for owner in ["c", "a", "b"] {
                try await server.owners.setBlocked(true, of: OwnerID(owner))
            }
            func page(_ query: String) async throws -> OwnerList {
                try await server.get("/owners\(query)", admin.fields).decoded(OwnerList.self)
            }
            let all = try await page("")
            #expect(all.owners.map(\.owner) == ["a", "b", "c"])
            #expect(all.next == nil)
            let first = try await page("?limit=2")
            #expect(first.owners.map(\.owner) == ["a", "b"])
            #expect(first.next == "b")
            #expect(try await page("?limit=2&after=b").owners.map(\.owner) == ["c"])
            for query in ["?limit=0", "?limit=1001", "?after="] {
                try expectProblem(
                    try await server.get("/owners\(query)", admin.fields), .badRequest)
            }
        }
    }

    @Test func `a name with special characters is percent-encoded`() async throws {
        try await withTokenServer { server in
            let admin = try await server.makeToken([.admin])
            let path = "oidc:id.example:a%2Fb%20c%25"
            let made = try await change(path, #"{"isBlocked":false}"#, admin, on: server)
                .decoded(OwnerDescription.self)
            #expect(made.owner == "oidc:id.example:a/b c%")
            #expect(try await server.get("/owners/\(path)", admin.fields).status == 200)
        }
    }

    @Test func `an unknown owner is not found, and a wrong name is refused`() async throws {
        try await withTokenServer { server in
            let admin = try await server.makeToken([.admin])
            for name in ["carol", "%20a", "%C3%BC", "%zz"] {
                try expectProblem(
                    try await server.get("/owners/\(name)", admin.fields), .notFound)
            }
            for name in ["%20a", "%C3%BC", "%zz"] {
                try expectProblem(
                    try await change(name, #"{"isBlocked":true}"#, admin, on: server), .badRequest)
            }
        }
    }

    @Test(arguments: [
        "{}", #"{"limits":{"maxStoredBytes":-1}}"#, #"{"limits":{"maxStoredByte":1}}"#,
        #"{"blocked":true}"#, #"{"isBlocked":"yes"}"#, #"{"limits":5}"#,
        #"{"limits":{"maxOpenSessions":1.5}}"#, #"{"limits":{"maxFileBytes":1e30}}"#, "[]",
    ])
    func `a wrong change is refused and changes nothing`(body: String) async throws {
        try await withTokenServer { server in
            let admin = try await server.makeToken([.admin])
            try expectProblem(try await change("alice", body, admin, on: server), .badRequest)
            #expect(try await server.owners.owner(OwnerID("alice")) == nil)
        }
    }

    @Test func `only administrators see and change owners`() async throws {
        try await withTokenServer { server in
            let backend = try await server.makeToken(ScopeBundle.backend.scopes)
            try expectProblem(try await server.get("/owners", backend.fields), .forbidden)
            try expectProblem(try await server.get("/owners/alice", backend.fields), .forbidden)
            let changed = try await change("alice", #"{"isBlocked":true}"#, backend, on: server)
            try expectProblem(changed, .forbidden)
        }
    }
}
