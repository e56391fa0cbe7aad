import KedgeEngine
import KedgeModel
import Testing

/// R73: a repeated create with its key gets the lost answer.
@Suite(.timeLimit(.minutes(1))) struct IdempotencyTests {
    private let fixture: EngineEnvironment
    private let new = NewSession(fileName: "a", fileSize: 2500)
    private let key = IdempotencyKey(key: "k", fingerprint: "f")

    init() throws { fixture = try EngineEnvironment() }

    @Test func `the same key and request give the same session`() async throws {
        var node = try await fixture.start()
        let first = try await node.engine.createSession(new, owner: .tester, idempotencyKey: key)
        let again = try await node.engine.createSession(new, owner: .tester, idempotencyKey: key)
        #expect(again == first)
        node = try await node.restart()
        let later = try await node.engine.createSession(new, owner: .tester, idempotencyKey: key)
        #expect(later == first)
    }

    @Test func `a replayed create shows what was received meanwhile`() async throws {
        let node = try await fixture.start()
        let first = try await node.engine.createSession(new, owner: .tester, idempotencyKey: key)
        let upload = Upload(
            id: first.sessionId, owner: .tester, content: sampleBytes(2500), chunkSize: 1000)
        try await node.put(1, of: upload)
        let again = try await node.engine.createSession(new, owner: .tester, idempotencyKey: key)
        #expect(again.receivedChunks == [1])
    }

    @Test func `the same key with another request is a conflict and creates nothing`() async throws
    {
        let node = try await fixture.start()
        let first = try await node.engine.createSession(new, owner: .tester, idempotencyKey: key)
        let other = IdempotencyKey(key: "k", fingerprint: "g")
        await #expect(throws: EngineError(.idempotencyConflict)) {
            try await node.engine.createSession(new, owner: .tester, idempotencyKey: other)
        }
        let unfinished = try await node.metadata.unfinishedSessions()
        #expect(unfinished.map(\.record.id) == [first.sessionId])
    }

    @Test func `idempotency keys belong to their owner`() async throws {
        let node = try await fixture.start()
        let mine = try await node.engine.createSession(new, owner: .tester, idempotencyKey: key)
        let theirs = try await node.engine.createSession(new, owner: .stranger, idempotencyKey: key)
        #expect(mine.sessionId != theirs.sessionId)
    }

    @Test func `without a key every create makes a session`() async throws {
        let node = try await fixture.start()
        let first = try await node.engine.createSession(new, owner: .tester)
        let second = try await node.engine.createSession(new, owner: .tester)
        #expect(first.sessionId != second.sessionId)
    }

    @Test func `one of many concurrent creates with one key makes a session`() async throws {
        let node = try await fixture.start()
        let ids = try await withThrowingTaskGroup(of: SessionID.self) { group in
            for _ in 0..<32 {
                group.addTask { [new, key] in
                    try await node.engine.createSession(new, owner: .tester, idempotencyKey: key)
                        .sessionId
                }
            }
            return try await group.reduce(into: Set<SessionID>()) { $0.insert($1) }
        }
        #expect(ids.count == 1)
        #expect(try await node.metadata.unfinishedSessions().count == 1)
    }
}
