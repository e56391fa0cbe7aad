import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// Sessions that links create.
@Suite(.timeLimit(.minutes(1))) struct LinkUseTests {
    private let fixture: EngineEnvironment
    private let content = sampleBytes(2300)

    init() throws { fixture = try EngineEnvironment() }

    private func new(_ name: String = "a.bin", uses: Int = 1) -> NewSession {
        var new = NewSession(fileName: name, fileSize: Int64(content.count), chunkSize: 1000)
        new.permit.createdBy = "token:abcdefghijkl"
        new.permit.link = LinkUse(
            linkID: String(repeating: "a", count: 32), maxUses: uses, fingerprint: name,
            expiresAt: fixture.clock.now().advanced(by: .seconds(100_000)))
        return new
    }

    private func upload(_ id: SessionID) -> Upload {
        Upload(id: id, owner: .tester, content: content, chunkSize: 1000)
    }

    @Test func `a repeated use of a one-use link finds the session, and another one is refused`()
        async throws
    {
        var node = try await fixture.start()
        let first = try await node.engine.createOrFindSession(new(), owner: .tester)
        #expect(first.isNew)
        try await node.put(0, of: upload(first.status.sessionId))
        node = try await node.restart()
        let second = try await node.engine.createOrFindSession(new(), owner: .tester)
        #expect(!second.isNew)
        #expect(second.status.sessionId == first.status.sessionId)
        #expect(second.status.receivedBytes == 1000)
        await #expect(throws: EngineError(.linkExpired)) {
            try await node.engine.createSession(new("b.bin"), owner: .tester)
        }
    }

    @Test func `fifty creates at once by a one-use link get one session`() async throws {
        let node = try await fixture.start()
        let created = try await withThrowingTaskGroup(of: CreatedSession.self) { group in
            for _ in 0..<50 {
                group.addTask {
                    try await node.engine.createOrFindSession(new(), owner: .tester)
                }
            }
            return try await group.reduce(into: [CreatedSession]()) { $0.append($1) }
        }
        #expect(Set(created.map(\.status.sessionId)).count == 1)
        #expect(created.count { $0.isNew } == 1)
    }

    @Test func `a canceled session returns the use, a completed one does not`() async throws {
        let node = try await fixture.start()
        let canceled = try await node.engine.createSession(new(), owner: .tester)
        try await node.engine.cancelSession(canceled.sessionId, owner: .tester)
        let status = try await node.engine.createSession(new("b.bin"), owner: .tester)
        #expect(status.sessionId != canceled.sessionId)
        try await node.putAll(of: upload(status.sessionId))
        _ = try await node.finish(upload(status.sessionId))
        let again = try await node.engine.createSession(new("b.bin"), owner: .tester)
        #expect(again.sessionId == status.sessionId)
        #expect(again.state == .completed)
        fixture.clock.advance(by: .seconds(3600))
        await #expect(throws: EngineError(.linkExpired)) {
            try await node.engine.createSession(new("b.bin"), owner: .tester)
        }
    }

    @Test func `an expired session returns the use`() async throws {
        let node = try await fixture.start()
        let first = try await node.engine.createSession(new(), owner: .tester)
        fixture.clock.advance(by: .seconds(3601))
        try await node.engine.sweep()
        let second = try await node.engine.createOrFindSession(new(), owner: .tester)
        #expect(second.isNew)
        #expect(second.status.sessionId != first.sessionId)
    }

    @Test func `a session without room on the disk returns the use`() async throws {
        let node = try await fixture.start()
        fixture.disk.pretendAvailable(100)
        await #expect(throws: EngineError(.storageFull)) {
            try await node.engine.createSession(new(), owner: .tester)
        }
        fixture.disk.pretendAvailable(1_000_000)
        #expect(try await node.engine.createOrFindSession(new(), owner: .tester).isNew)
    }

    @Test func `an idempotency key counts for its link only`() async throws {
        let node = try await fixture.start()
        let key = IdempotencyKey(key: "key", fingerprint: "request")
        let owners = try await node.engine.createSession(
            NewSession(fileName: "a.bin", fileSize: 2300), owner: .tester, idempotencyKey: key)
        let first = try await node.engine.createOrFindSession(
            new(uses: 2), owner: .tester, idempotencyKey: key)
        #expect(first.isNew)
        #expect(first.status.sessionId != owners.sessionId)
        let second = try await node.engine.createOrFindSession(
            new(uses: 2), owner: .tester, idempotencyKey: key)
        #expect(!second.isNew)
        #expect(second.status.sessionId == first.status.sessionId)
    }

    @Test func `a repeated body gets the file of the first one, and another is refused`()
        async throws
    {
        let node = try await fixture.start()
        let file = try await node.engine.ingest(
            new(), owner: .tester, expecting: nil, body: ScriptedBody(content))
        let body = ScriptedBody(content)
        let again = try await node.engine.ingest(
            new(), owner: .tester, expecting: file.digest, body: body)
        #expect(again == file)
        #expect(body.watch.readerCount == 1)
        let other = Array(content.reversed())
        await #expect(throws: EngineError(.linkExpired)) {
            try await node.engine.ingest(
                new(), owner: .tester, expecting: nil, body: ScriptedBody(other))
        }
        await #expect(throws: EngineError(.integrityMismatch)) {
            try await node.engine.ingest(
                new(), owner: .tester, expecting: SHA256Hasher.digest(of: [1]),
                body: ScriptedBody(content))
        }
    }

    @Test func `a body that failed returns the use`() async throws {
        let node = try await fixture.start()
        await #expect(throws: EngineError.self) {
            try await node.engine.ingest(
                new(), owner: .tester, expecting: nil,
                body: ScriptedBody(
                    content.prefix(1500), announcing: content.count, ending: .breaksOff))
        }
        let file = try await node.engine.ingest(
            new(), owner: .tester, expecting: nil, body: ScriptedBody(content))
        #expect(try await node.content(of: file) == content)
    }

    @Test func `a body whose process has ended is replaced`() async throws {
        let node = try await fixture.start()
        var abandoned = new()
        // As the request of the ended process has left it.
        abandoned.metadata["kedge.files.whole"] = "1"
        let open = try await node.engine.createSession(abandoned, owner: .tester)
        try await node.put(0, of: upload(open.sessionId))
        let file = try await node.engine.ingest(
            new(), owner: .tester, expecting: nil, body: ScriptedBody(content))
        #expect(file.sessionID != open.sessionId)
        #expect(try await node.content(of: file) == content)
    }

    @Test func `a body does not replace what another protocol has sent by the link`() async throws {
        let node = try await fixture.start()
        let open = try await node.engine.createSession(new(), owner: .tester)
        try await node.put(0, of: upload(open.sessionId))
        await #expect(throws: EngineError(.busy)) {
            try await node.engine.ingest(
                new(), owner: .tester, expecting: nil, body: ScriptedBody(content))
        }
        let status = try await node.engine.sessionStatus(open.sessionId, owner: .tester)
        #expect(status.receivedBytes == 1000)
    }
}
