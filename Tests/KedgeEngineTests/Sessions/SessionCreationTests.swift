import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct SessionCreationTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    /// R7, R28, R29, R52, R53.
    @Test func `a new session is open, empty and laid out`() async throws {
        let node = try await fixture.start()
        let status = try await node.engine.createSession(
            NewSession(fileName: "a.txt", fileSize: 2500, chunkSize: 500), owner: .tester)
        #expect(status.state == .open)
        #expect(status.fileName == "a.txt")
        #expect(status.fileSize == 2500)
        #expect(status.chunkSize == 500)
        #expect(status.totalChunks == 5)
        #expect(status.receivedChunks == [])
        #expect(status.receivedBytes == 0)
        #expect(status.partialChunks == [])
        #expect(status.remoteFileId == nil)
        let lifetime = node.engine.configuration.emptySessionLifetime
        #expect(status.expiresAt == fixture.clock.now().advanced(by: lifetime))
    }

    @Test func `a session is the same after a restart`() async throws {
        var node = try await fixture.start()
        let digest = SHA256Hasher.digest(of: [1])
        let before = try await node.engine.createSession(
            NewSession(
                fileName: "é\" 👩‍👩‍👧.txt", fileSize: 2500, mimeType: "text/plain; charset=utf-8",
                chunkSize: 700, declaredDigest: digest, metadata: ["k": "é\"\n"]),
            owner: .tester)
        node = try await node.restart()
        let after = try await node.engine.sessionStatus(before.sessionId, owner: .tester)
        #expect(after == before)
        #expect(after.fileHashSha256 == digest)
    }

    @Test func `a session that asks for no chunk size gets the default`() async throws {
        let node = try await fixture.start()
        let status = try await node.engine.createSession(
            NewSession(fileName: "a", fileSize: 2500), owner: .tester)
        #expect(status.chunkSize == node.engine.configuration.defaultChunkSize)
    }

    @Test(arguments: [1, 4096] as [Int64])
    func `the least and the largest chunk size are accepted`(chunkSize: Int64) async throws {
        let node = try await fixture.start()
        let status = try await node.engine.createSession(
            NewSession(fileName: "a", fileSize: 10, chunkSize: chunkSize), owner: .tester)
        #expect(status.chunkSize == chunkSize)
    }

    /// R50.
    @Test(arguments: [4097, 1 << 31, 1 << 53, Int64.max])
    func `a chunk size out of bounds becomes the nearest one`(chunkSize: Int64) async throws {
        let node = try await fixture.start()
        let status = try await node.engine.createSession(
            NewSession(fileName: "a", fileSize: 10, chunkSize: chunkSize), owner: .tester)
        #expect(status.chunkSize == 4096)
    }

    @Test(arguments: [0, -1, Int64.min])
    func `a chunk size that is not above zero is refused`(chunkSize: Int64) async throws {
        let node = try await fixture.start()
        await #expect(throws: EngineError(.badRequest)) {
            try await node.engine.createSession(
                NewSession(fileName: "a", fileSize: 10, chunkSize: chunkSize), owner: .tester)
        }
    }

    /// R48.
    @Test(arguments: [1_000_001, 1 << 53, Int64.max])
    func `a file beyond the limit is too large, and the error has the limit`(size: Int64)
        async throws
    {
        let node = try await fixture.start()
        let error = await #expect(throws: EngineError.self) {
            try await node.engine.createSession(
                NewSession(fileName: "a", fileSize: size), owner: .tester)
        }
        #expect(error?.code == .fileTooLarge)
        #expect(error?.maxBytes == 1_000_000)
    }

    @Test(arguments: [-1, Int64.min])
    func `a size below zero is refused`(size: Int64) async throws {
        let node = try await fixture.start()
        await #expect(throws: EngineError(.badRequest)) {
            try await node.engine.createSession(
                NewSession(fileName: "a", fileSize: size), owner: .tester)
        }
    }

    /// R47.
    @Test(arguments: ["", "..", "../a", "a/b", "a\\b"])
    func `a name that is a path is refused`(name: String) async throws {
        let node = try await fixture.start()
        await #expect(throws: EngineError(.badRequest)) {
            try await node.engine.createSession(
                NewSession(fileName: name, fileSize: 1), owner: .tester)
        }
    }

    /// R49.
    @Test(arguments: [
        "", "text", "/", "text/", "/plain", "text/plain/x", "te xt/plain", "text/plain\r\nX: y",
        "text/plain\u{0}",
        "text/pläin", "t" + String(repeating: "x", count: 255) + "/y",
    ])
    func `a malformed media type is refused`(mimeType: String) async throws {
        let node = try await fixture.start()
        await #expect(throws: EngineError(.badRequest)) {
            try await node.engine.createSession(
                NewSession(fileName: "a", fileSize: 1, mimeType: mimeType), owner: .tester)
        }
    }

    @Test(arguments: ["text/plain", "image/svg+xml", "a/b; q=\"x y\"", "application/vnd.a-b.c_d"])
    func `a media type is kept as it is`(mimeType: String) async throws {
        let node = try await fixture.start()
        let status = try await node.engine.createSession(
            NewSession(fileName: "a", fileSize: 0, mimeType: mimeType), owner: .tester)
        let upload = Upload(id: status.sessionId, owner: .tester, content: [], chunkSize: 1000)
        #expect(try await node.finish(upload).mimeType == mimeType)
    }

    @Test func `metadata beyond the limit is refused`() async throws {
        let node = try await fixture.start()
        let limit = node.engine.configuration.maxMetadataByteCount
        var new = NewSession(fileName: "a", fileSize: 1)
        new.metadata = ["é": String(repeating: "x", count: limit - 2)]
        _ = try await node.engine.createSession(new, owner: .tester)
        new.metadata = ["é": String(repeating: "x", count: limit - 1)]
        await #expect(throws: EngineError(.badRequest)) {
            try await node.engine.createSession(new, owner: .tester)
        }
    }

    @Test func `a file of too many chunks gets larger chunks than requested`() async throws {
        let fixture = try EngineEnvironment { $0.maxFileSize = 1 << 40 }
        fixture.disk.pretendAvailable(.max)
        let node = try await fixture.start()
        let status = try await node.engine.createSession(
            NewSession(fileName: "a", fileSize: 5 << 30, chunkSize: 1000), owner: .tester)
        #expect(try #require(status.totalChunks) <= ChunkLayout.maxChunkCount)
        #expect(status.chunkSize > 1000)
    }

    @Test func `a file that cannot fit on the disk is refused before any byte`() async throws {
        let node = try await fixture.start()
        fixture.disk.pretendAvailable(99)
        await #expect(throws: EngineError(.storageFull)) {
            try await node.engine.createSession(
                NewSession(fileName: "a", fileSize: 100), owner: .tester)
        }
        _ = try await node.engine.createSession(
            NewSession(fileName: "a", fileSize: 99), owner: .tester)
    }
}
