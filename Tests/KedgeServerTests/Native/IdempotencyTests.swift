import KedgeModel
import KedgeTesting
import Testing

/// `Idempotency-Key` on `POST /uploads/sessions`, which recovers a lost answer.
@Suite(.timeLimit(.minutes(1))) struct IdempotencyTests {
    private static let message = CreateSessionRequest(fileName: "a", fileSize: 10, chunkSize: 5)

    private static func create(
        _ message: CreateSessionRequest = message, key: String, on server: RunningServer
    ) async throws -> HTTPAnswer {
        try await server.ask(.createSession(message, [("Idempotency-Key", key)]))
    }

    @Test
    func `a repeated request with an Idempotency-Key gives the same session with its progress`()
        async throws
    {
        try await withServer { server in
            let first = try await Self.create(key: "k", on: server)
            let session = try first.decoded(CreateSessionResponse.self)
            let upload = Upload(content: Array(0..<10), chunkSize: 5, id: session.sessionId)
            _ = try await server.ask(upload.put(1))
            let again = try await Self.create(key: "k", on: server)
            #expect(again.status == 201)
            #expect(again.field("Location") == first.field("Location"))
            let found = try again.decoded(CreateSessionResponse.self)
            #expect(found.sessionId == session.sessionId)
            #expect(found.receivedBytes == 5)
        }
    }

    /// draft-ietf-httpapi-idempotency-key-header: a structured-field string has quotes.
    @Test func `a quoted Idempotency-Key is the same key`() async throws {
        try await withServer { server in
            let plain = try await Self.create(key: "k", on: server)
            let quoted = try await Self.create(key: "\"k\"", on: server)
            #expect(plain.field("Location") == quoted.field("Location"))
        }
    }

    @Test func `requests with different keys give different sessions`() async throws {
        try await withServer { server in
            let places = [
                try await Self.create(key: "k", on: server),
                try await Self.create(key: "K", on: server),
                try await server.ask(.createSession(Self.message)),
                try await server.ask(.createSession(Self.message)),
            ].map { $0.field("Location") }
            #expect(Set(places).count == 4)
        }
    }

    @Test(arguments: [
        CreateSessionRequest(fileName: "b", fileSize: 10, chunkSize: 5),
        CreateSessionRequest(fileName: "a", fileSize: 11, chunkSize: 5),
        CreateSessionRequest(fileName: "a", fileSize: 10),
        CreateSessionRequest(fileName: "a", fileSize: 10, chunkSize: 5, metadata: ["k": "v"]),
    ])
    func `another request under a used key is refused`(other: CreateSessionRequest) async throws {
        try await withServer { server in
            _ = try await Self.create(key: "k", on: server)
            try expectProblem(
                try await Self.create(other, key: "k", on: server), .idempotencyConflict)
        }
    }

    @Test func `an Idempotency-Key is known after a restart`() async throws {
        let fixture = try await ServerEnvironment()
        let before = try await fixture.withServer { try await Self.create(key: "k", on: $0) }
        let after = try await fixture.withServer { try await Self.create(key: "k", on: $0) }
        #expect(before.field("Location") == after.field("Location"))
    }

    @Test func `concurrent requests with one key give one session`() async throws {
        try await withServer { server in
            let places = try await withThrowingTaskGroup(of: String?.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        try await Self.create(key: "k", on: server).field("Location")
                    }
                }
                return try await group.reduce(into: Set<String?>()) { $0.insert($1) }
            }
            #expect(places.count == 1 && !places.contains(nil))
        }
    }

    @Test(arguments: ["", "\"\"", String(repeating: "x", count: 256), "é", "a\u{7F}"])
    func `a malformed Idempotency-Key is refused`(key: String) async throws {
        try await SharedServer.use { server in
            let answer = try await Self.create(key: key, on: server)
            #expect(answer.status == 400)
        }
    }
}
