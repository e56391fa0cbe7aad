import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting
import Logging
import Testing

/// Requests with `Kedge-Owner`.
@Suite(.timeLimit(.minutes(1))) struct ActingTests {
    private static func owner(_ name: String) -> [(String, String)] { [("Kedge-Owner", name)] }

    @Test func `a backend acts for another owner with its own scopes`() async throws {
        try await withTokenServer { server in
            let backend = try await server.makeToken(
                [.actAs, .uploadsWrite, .filesList], owner: "backend")
            let alice = try await server.makeToken(owner: "alice")
            let created = try await server.ask(
                .createSession(
                    .init(fileName: "a.bin", fileSize: 10), backend.fields + Self.owner("alice")))
            #expect(created.status == 201)
            let path = try #require(created.field("Location"))
            #expect(try await server.get(path, alice.fields).status == 200)
            try expectProblem(try await server.get(path, backend.fields), .sessionNotFound)
            // Alice may read files; the backend may not, also when it acts for her.
            try expectProblem(
                try await server.get(
                    "/files/\(FileID.random())", backend.fields + Self.owner("alice")),
                .forbidden)
            let line = server.fixture.log.lines.first { $0.metadata["acting.for"] != nil }
            #expect(line?.metadata["owner"] == "backend")
            #expect(line?.metadata["acting.for"] == "alice")
        }
    }

    @Test func `acting needs its scope, also for the own owner`() async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken(
                Set(Scope.allCases).subtracting([.actAs]), owner: "alice")
            for name in ["alice", "bob"] {
                try expectProblem(
                    try await server.get("/files", token.fields + Self.owner(name)), .forbidden)
            }
        }
    }

    @Test func `the field alone is no credential`() async throws {
        try await withTokenServer { server in
            try expectProblem(
                try await server.get("/files", Self.owner("alice")), .unauthenticated)
        }
    }

    @Test(arguments: [
        [""], ["al\u{e9}ce"], [String(repeating: "a", count: 256)], ["alice", "bob"],
        ["alice", "alice"],
    ])
    func `a malformed or repeated field is refused`(names: [String]) async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken([.actAs, .filesList])
            let fields = token.fields + names.flatMap { Self.owner($0) }
            try expectProblem(try await server.get("/files", fields), .badRequest)
        }
    }

    @Test func `the owner that a proxy names may act with the scope of the setting`() async throws {
        try await withProxyServer(scopes: ScopeBundle.backend.scopes) { server async throws in
            let fields = [proxyUser("backend")] + Self.owner("alice")
            #expect(try await server.get("/files", fields).status == 200)
        }
        try await withProxyServer { server in
            let fields = [proxyUser("backend")] + Self.owner("alice")
            try expectProblem(try await server.get("/files", fields), .forbidden)
        }
    }

    @Test func `without identities the field is refused`() async throws {
        try await SharedServer.use { server in
            try expectProblem(try await server.get("/files", Self.owner("alice")), .forbidden)
            #expect(try await server.get("/healthz", Self.owner("alice")).status == 200)
        }
    }
}
