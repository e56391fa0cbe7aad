import KedgeModel
import Testing

/// `Idempotency-Key` on `POST /uploads/sessions`: how a lost answer is recovered.
@Suite(.timeLimit(.minutes(1))) struct `An Idempotency-Key` {
    private static let message = CreateSessionRequest(fileName: "a", fileSize: 10, chunkSize: 5)

    private static func create(
        _ message: CreateSessionRequest = message, key: String, on server: RunningServer
    ) async throws -> HTTPAnswer {
        try await server.ask(.createSession(message, [("Idempotency-Key", key)]))
    }

    @Test func `the same request again gives the same session, as far as it has come`()
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
    @Test func `quotes do not make another key`() async throws {
        try await withServer { server in
            let plain = try await Self.create(key: "k", on: server)
            let quoted = try await Self.create(key: "\"k\"", on: server)
            #expect(plain.field("Location") == quoted.field("Location"))
        }
    }

    @Test func `other keys make other sessions`() async throws {
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

    @Test func `a key holds after a restart`() async throws {
        let place = try await ServerPlace()
        let before = try await place.withServer { try await Self.create(key: "k", on: $0) }
        let after = try await place.withServer { try await Self.create(key: "k", on: $0) }
        #expect(before.field("Location") == after.field("Location"))
    }

    @Test func `the same key at the same time gives one session`() async throws {
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
    func `text that is no key is refused`(key: String) async throws {
        try await SharedServer.use { server in
            let answer = try await Self.create(key: key, on: server)
            #expect(answer.status == 400)
        }
    }
}
