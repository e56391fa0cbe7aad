import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// R129: the client does not send again what an expired session received.
@Suite(.timeLimit(.minutes(1))) struct AdoptionTests {
    private let fixture: EngineEnvironment

    init() throws {
        fixture = try EngineEnvironment {
            $0.sessionLifetime = .seconds(100)
            $0.expiryGrace = .seconds(1000)
        }
    }

    private func expired(on node: Node) async throws -> Upload {
        let upload = try await node.begin(sampleBytes(3500))
        try await node.put(0, of: upload)
        try await node.put(2, of: upload)
        await node.breakOff(1, of: upload, after: 300)
        fixture.clock.advance(by: .seconds(101))
        return upload
    }

    @Test(arguments: [false, true], [false, true])
    func `a new session takes over chunks and partials within the grace`(
        swept: Bool, afterRestart: Bool
    ) async throws {
        var node = try await fixture.start()
        let old = try await expired(on: node)
        if swept { try await node.engine.sweep() }
        if afterRestart { node = try await node.restart() }
        let new = try await node.begin(old.content, adopting: old.id)
        #expect(new.id != old.id)
        let status = try await node.status(of: new)
        #expect(status.receivedChunks == [0, 2])
        #expect(status.partialChunks == [PartialChunk(index: 1, receivedBytes: 300)])
        #expect(status.receivedBytes == 2300)
        try await node.put(1, of: new, from: 300)
        try await node.put(3, of: new)
        #expect(try await node.content(of: try await node.finish(new)) == new.content)
        await #expect(throws: EngineError(.sessionExpired)) { try await node.status(of: old) }
    }

    @Test func `the sweep of the old session leaves the adopted bytes alone`() async throws {
        let node = try await fixture.start()
        let old = try await expired(on: node)
        let new = try await node.begin(old.content, adopting: old.id)
        fixture.clock.advance(by: .seconds(90))
        try await node.put(1, of: new, from: 300)
        // The last chunk trickles in for longer than the old session's grace.
        for step in 0..<15 {
            fixture.clock.advance(by: .seconds(90))
            await node.breakOff(3, of: new, from: step * 20, after: 20)
            try await node.engine.sweep()
        }
        try await node.put(3, of: new, from: 300)
        #expect(try await node.content(of: try await node.finish(new)) == new.content)
    }

    @Test func `a session of an earlier version is adopted with its chunk size`() async throws {
        let node = try await fixture.start()
        let old = try await expired(on: node)
        try await node.kill()
        let later = try await fixture.start { $0.chunkSizeMultiple = 64 }
        let rounded = try await later.status(of: try await later.begin(old.content))
        #expect(rounded.chunkSize == 1024)
        let new = try await later.begin(old.content, adopting: old.id)
        let status = try await later.status(of: new)
        #expect(status.chunkSize == 1000)
        #expect(status.receivedChunks == [0, 2])
    }

    @Test func `after the grace a new session starts empty`() async throws {
        let node = try await fixture.start()
        let old = try await expired(on: node)
        fixture.clock.advance(by: .seconds(1100))
        try await node.engine.sweep()
        let new = try await node.begin(old.content, adopting: old.id)
        #expect(try await node.status(of: new).receivedBytes == 0)
        try await node.putAll(of: new)
        #expect(try await node.content(of: try await node.finish(new)) == new.content)
    }

    @Test func `another owner's session is not adopted and keeps what it has`() async throws {
        let node = try await fixture.start()
        let old = try await expired(on: node)
        let thief = try await node.begin(old.content, owner: .stranger, adopting: old.id)
        #expect(try await node.status(of: thief).receivedBytes == 0)
        let new = try await node.begin(old.content, adopting: old.id)
        #expect(try await node.status(of: new).receivedChunks == [0, 2])
    }

    @Test func `a session that still lives is not adopted and is not disturbed`() async throws {
        let node = try await fixture.start()
        let old = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: old)
        let new = try await node.begin(old.content, adopting: old.id)
        #expect(try await node.status(of: new).receivedBytes == 0)
        #expect(try await node.status(of: old).receivedChunks == [0])
        try await node.put(1, of: old)
        try await node.put(2, of: old)
        #expect(try await node.content(of: try await node.finish(old)) == old.content)
    }

    @Test func `a writer of a live session survives an attempt to adopt it`()
        async throws
    {
        let node = try await fixture.start()
        let old = try await node.begin(sampleBytes(1000))
        let body = ScriptedBody(old.content.prefix(300), announcing: 1000, ending: .hangs)
        let task = Task { try await node.put(old.put(0), of: old, body) }
        await body.watch.isHanging.wait()
        _ = try await node.begin(old.content, adopting: old.id)
        #expect(node.engine.activeWriteCount == 1)
        task.cancel()
        _ = await task.result
        #expect(try await node.status(of: old).partialChunks.map(\.receivedBytes) == [300])
    }

    @Test(
        arguments: [
            (3501, 1000, nil), (3500, 999, nil), (3500, 1000, SHA256Hasher.digest(of: [1])),
        ] as [(Int, Int, SHA256Digest?)])
    func `a session of another size, chunk size or digest starts empty`(
        size: Int, chunkSize: Int, digest: SHA256Digest?
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(
            sampleBytes(3500), declaring: digest.map { _ in SHA256Hasher.digest(of: [2]) })
        try await node.put(0, of: upload)
        fixture.clock.advance(by: .seconds(101))
        let new = try await node.begin(
            sampleBytes(size), chunkSize: chunkSize, declaring: digest, adopting: upload.id)
        #expect(try await node.status(of: new).receivedBytes == 0)
    }

    @Test func `an unknown session to adopt is no error`() async throws {
        let node = try await fixture.start()
        let new = try await node.begin(sampleBytes(1000), adopting: .random())
        #expect(try await node.status(of: new).receivedBytes == 0)
    }

    @Test func `one of many sessions that adopt at once gets the bytes`() async throws {
        let node = try await fixture.start()
        let old = try await expired(on: node)
        let received = try await withThrowingTaskGroup(of: Int64.self) { group in
            for _ in 0..<16 {
                group.addTask {
                    let new = try await node.begin(old.content, adopting: old.id)
                    return try await node.status(of: new).receivedBytes
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(received.filter { $0 > 0 } == [2300])
    }
}
