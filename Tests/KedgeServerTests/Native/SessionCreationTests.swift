import KedgeEngine
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// `POST /uploads/sessions`: the first state of a session, and the reasons to refuse one.
@Suite(.timeLimit(.minutes(1))) struct SessionCreationTests {
    private static let path = "/uploads/sessions"

    /// R47–R54.
    @Test func `a new session has its address, limits and lifetime`() async throws {
        try await SharedServer.use { server in
            let answer = try await server.ask(
                .createSession(
                    CreateSessionRequest(
                        fileName: "log.bin", fileSize: 2500, mimeType: "text/plain",
                        chunkSize: 1000)))
            #expect(answer.status == 201)
            #expect(answer.field("Content-Type") == "application/json")
            let session = try answer.decoded(CreateSessionResponse.self)
            #expect(answer.field("Location") == "\(Self.path)/\(session.sessionId)")
            #expect(session.state == .open)
            #expect(session.fileSize == 2500)
            #expect(session.chunkSize == 1000)
            #expect(session.totalChunks == 3)
            #expect(session.receivedBytes == 0)
            #expect(Set(session.requiredHeaders) == ["Content-Range", "X-Chunk-Hash"])
            #expect(session.limits == server.engine.configuration.limits)
            let lifetime = server.engine.configuration.emptySessionLifetime
            #expect(
                session.expiresAt == server.fixture.clock.now().advanced(by: lifetime))
        }
    }

    struct Layout: Sendable {
        var fileSize: Int64
        var wish: Int64?
        var chunkSize: Int64
        var count: Int
    }

    /// R9, R50: 4 MiB by default, and at most as many chunks as a list can hold.
    @Test(arguments: [
        Layout(fileSize: 10 << 20, wish: nil, chunkSize: 4 << 20, count: 3),
        Layout(fileSize: 1000, wish: 7, chunkSize: 7, count: 143),
        Layout(fileSize: 1, wish: 64 << 20, chunkSize: 64 << 20, count: 1),
        Layout(fileSize: 0, wish: 1000, chunkSize: 1000, count: 0),
        Layout(fileSize: 1 << 20, wish: 1, chunkSize: 1, count: 1 << 20),
        Layout(fileSize: 1_048_577, wish: 1, chunkSize: 2, count: 524_289),
    ])
    func `the server decides the chunk size`(layout: Layout) async throws {
        try await SharedServer.use { server in
            let session = try await server.ask(
                .createSession(
                    CreateSessionRequest(
                        fileName: "a", fileSize: layout.fileSize, chunkSize: layout.wish))
            ).decoded(CreateSessionResponse.self)
            #expect(session.chunkSize == layout.chunkSize)
            #expect(session.totalChunks == layout.count)
        }
    }

    @Test(
        arguments: [
            (1, 1000), (999, 1000), (1000, 1000), (1_000_001, 1_000_000), (1 << 31, 1_000_000),
            (1 << 53, 1_000_000), (.max, 1_000_000),
        ] as [(Int64, Int64)])
    func `a chunk size outside the limits becomes the nearest one`(
        wish: Int64, chunkSize: Int64
    ) async throws {
        let fixture = try await ServerEnvironment { $0.engine.chunkSizes = 1000...1_000_000 }
        try await fixture.withServer { server in
            let session: CreateSessionResponse = try await server.ask(
                .createSession(CreateSessionRequest(fileName: "a", fileSize: 1, chunkSize: wish))
            ).decoded()
            #expect(session.chunkSize == chunkSize)
        }
    }

    @Test(
        arguments: [
            (1, 1024), (1025, 1088), (1088, 1088), (999_937, 999_936), (4 << 20, 999_936),
        ] as [(Int64, Int64)])
    func `a chunk size is rounded to whole blocks of the hash within the limits`(
        wish: Int64, chunkSize: Int64
    ) async throws {
        let fixture = try await ServerEnvironment {
            $0.engine.chunkSizes = 1001...999_990
            $0.engine.chunkSizeMultiple = 64
        }
        try await fixture.withServer { server in
            let session: CreateSessionResponse = try await server.ask(
                .createSession(CreateSessionRequest(fileName: "a", fileSize: 1, chunkSize: wish))
            ).decoded()
            #expect(session.chunkSize == chunkSize)
        }
    }

    @Test func `the largest chunk size is no reason to stop`() async throws {
        let fixture = try await ServerEnvironment {
            $0.engine.chunkSizes = 1...Int64.max
            $0.engine.chunkSizeMultiple = 64
        }
        try await fixture.withServer { server in
            let session: CreateSessionResponse = try await server.ask(
                .createSession(CreateSessionRequest(fileName: "a", fileSize: 1, chunkSize: .max))
            ).decoded()
            #expect(session.chunkSize == Int64.max / 64 * 64)
        }
    }

    @Test(arguments: [Int64.min, -1, 0])
    func `a chunk size that is not above zero is refused`(chunkSize: Int64) async throws {
        let fixture = try await ServerEnvironment { $0.engine.chunkSizes = 1000...1_000_000 }
        try await fixture.withServer { server in
            let answer = try await server.ask(
                .createSession(
                    CreateSessionRequest(fileName: "a", fileSize: 1, chunkSize: chunkSize)))
            try expectProblem(answer, .badRequest)
            let detail = try answer.decoded(ProblemDocument.self).detail
            #expect(detail?.contains("chunkSize") == true)
        }
    }

    @Test(arguments: [-1, Int64.min])
    func `a file size below zero is refused`(size: Int64) async throws {
        try await SharedServer.use { server in
            let answer = try await server.ask(
                .createSession(CreateSessionRequest(fileName: "a", fileSize: size)))
            try expectProblem(answer, .badRequest)
        }
    }

    /// R48.
    @Test(arguments: [(1 << 40) + 1, 1 << 53, (1 << 53) + 1, Int64.max - 1, .max])
    func `a file that is too large is refused with the largest size taken`(
        size: Int64
    ) async throws {
        try await SharedServer.use { server in
            let answer = try await server.ask(
                .createSession(CreateSessionRequest(fileName: "a", fileSize: size)))
            #expect(try expectProblem(answer, .fileTooLarge).maxBytes == 1 << 40)
        }
    }

    @Test(arguments: [
        "", ".", "..", "../etc/passwd", "a/b", "/", "a\\b", String(repeating: "é", count: 5120),
        String(repeating: "x", count: 256),
        String(repeating: "é", count: 128),
    ])
    func `a file name that is a path, or too long, is refused`(name: String) async throws {
        try await SharedServer.use { server in
            let answer = try await server.ask(
                .createSession(CreateSessionRequest(fileName: name, fileSize: 1)))
            try expectProblem(answer, .badRequest)
        }
    }

    @Test(arguments: [
        "a", "ship's log, 3rd part.txt", "日誌 ☂ 🏴‍☠️.bin", "\"quoted\"; x=y", "a%2Fb", " ", "...",
        String(repeating: "x", count: 255), String(repeating: "é", count: 127),
    ])
    func `any other file name comes back unchanged`(name: String) async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin([1, 2, 3], fileName: name)
            #expect(try await server.status(of: upload).fileName == name)
        }
    }

    @Test(arguments: [
        "", "text", "text/", "/plain", "text/plain\r\nX-Evil: 1", "text/plain; é=1", "a b/c",
        "text/" + String(repeating: "x", count: 256),
    ])
    func `a malformed media type is refused`(mimeType: String) async throws {
        try await SharedServer.use { server in
            let answer = try await server.ask(
                .createSession(
                    CreateSessionRequest(fileName: "a", fileSize: 1, mimeType: mimeType)))
            try expectProblem(answer, .badRequest)
        }
    }

    @Test func `session metadata is accepted up to its limit`() async throws {
        try await SharedServer.use { server in
            func create(_ byteCount: Int) async throws -> HTTPAnswer {
                let value = String(repeating: "v", count: byteCount - 1)
                return try await server.ask(
                    .createSession(
                        CreateSessionRequest(
                            fileName: "a", fileSize: 1, metadata: ["k": value])))
            }
            let limit = server.engine.configuration.maxMetadataByteCount
            #expect(try await create(limit).status == 201)
            try expectProblem(try await create(limit + 1), .badRequest)
        }
    }

    @Test func `a file that the disk has no room for is refused before its first byte`()
        async throws
    {
        try await withServer { configuration in
            configuration.storageReserve = .max
        } _: { server in
            let answer = try await server.ask(
                .createSession(CreateSessionRequest(fileName: "a", fileSize: 1)))
            try expectProblem(answer, .storageFull)
        }
    }
}
