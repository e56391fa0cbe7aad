import KedgeEngine
import KedgeModel
import KedgeTesting
import Testing

/// R102: cancelling a session releases everything that it holds.
@Suite(.timeLimit(.minutes(1))) struct CancelTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    private func cancel(_ upload: Upload, on node: Node) async throws {
        try await node.engine.cancelSession(upload.id, owner: upload.owner)
    }

    @Test func `a cancelled session's bytes are gone at once`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: upload)
        await node.breakOff(1, of: upload, after: 300)
        #expect(try await node.bytes.stagingKeys() == [StagingKey(upload.id)])
        try await cancel(upload, on: node)
        #expect(try await node.bytes.stagingKeys() == [])
        let status = try await node.status(of: upload)
        #expect(status.state == .canceled)
        #expect(status.receivedBytes == 0)
    }

    @Test(arguments: [false, true])
    func `a cancelled session accepts neither bytes nor a finalize`(afterRestart: Bool) async throws
    {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: upload)
        try await cancel(upload, on: node)
        if afterRestart { node = try await node.restart() }
        await #expect(throws: EngineError(.sessionClosed)) { try await node.put(0, of: upload) }
        await #expect(throws: EngineError(.sessionClosed)) {
            try await node.append(upload.content, to: upload, at: 0)
        }
        await #expect(throws: EngineError(.sessionClosed)) { try await node.finish(upload) }
        #expect(try await node.bytes.stagingKeys() == [])
    }

    @Test func `cancelling a session is idempotent`() async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await cancel(upload, on: node)
        try await cancel(upload, on: node)
        node = try await node.restart()
        try await cancel(upload, on: node)
        #expect(try await node.status(of: upload).state == .canceled)
    }

    @Test func `an expired session can be cancelled`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: upload)
        fixture.clock.advance(by: node.engine.configuration.sessionLifetime + .seconds(1))
        try await cancel(upload, on: node)
        #expect(try await node.bytes.stagingKeys() == [])
    }

    @Test(arguments: [false, true])
    func `cancelling stops a hung writer`(appending: Bool) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        let body = ScriptedBody(
            upload.content.prefix(300), announcing: appending ? 2500 : 1000, ending: .hangs)
        let task = Task {
            if appending {
                _ = try await node.engine.append(
                    AppendPut(offset: 0), to: upload.id, owner: upload.owner, body: body)
            } else {
                try await node.put(upload.put(0), of: upload, body)
            }
        }
        await body.watch.isHanging.wait()
        try await cancel(upload, on: node)
        let error = await #expect(throws: EngineError.self) { try await task.value }
        #expect(node.engine.activeWriteCount == 0)
        #expect(try await node.bytes.stagingKeys() == [])
        // The code is the same whichever of the append's two slots is stopped first.
        #expect(error?.code == .sessionClosed)
    }

    @Test func `a cancel that the store refuses leaves the session open`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: upload)
        node.metadata.before { call in
            if call == .cancel { throw MetadataError.unavailable("planned") }
        }
        await #expect(throws: EngineError(.unavailable)) { try await cancel(upload, on: node) }
        node.metadata.before(nil)
        #expect(try await node.status(of: upload).state == .open)
        try await node.put(1, of: upload)
        try await node.put(2, of: upload)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `cancelling one session leaves another with the same bytes alone`() async throws {
        let node = try await fixture.start()
        let first = try await node.begin(sampleBytes(1500))
        let second = try await node.begin(sampleBytes(1500))
        try await node.putAll(of: first)
        try await node.putAll(of: second)
        let file = try await node.finish(first)
        try await cancel(second, on: node)
        #expect(try await node.content(of: file) == first.content)
    }

    @Test func `an unknown session is not found`() async throws {
        let node = try await fixture.start()
        await #expect(throws: EngineError(.sessionNotFound)) {
            try await node.engine.cancelSession(.random(), owner: .tester)
        }
    }
}
