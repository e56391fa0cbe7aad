import KedgeEngine
import KedgeModel
import KedgeTesting
import Testing

/// Views of an upload, for a client that may go on with it.
@Suite(.timeLimit(.minutes(1))) struct UploadViewTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    private func view(
        of upload: Upload, on node: Node, stopsAppend: Bool = false
    ) async throws -> UploadView {
        try await node.engine.uploadView(
            of: upload.id, owner: upload.owner, stopsAppend: stopsAppend)
    }

    /// Starts an append that hangs after some bytes, and returns once it does.
    private func hang(
        _ upload: Upload, after count: Int, on node: Node
    ) async -> Task<Int64, any Error> {
        let body = ScriptedBody(upload.content.prefix(count), ending: .hangs)
        let task = Task {
            try await node.engine.append(
                AppendPut(offset: 0), to: upload.id, owner: upload.owner, body: body)
        }
        await body.watch.isHanging.wait()
        return task
    }

    @Test func `a view has the values that the session was created with`() async throws {
        let node = try await fixture.start()
        var new = NewSession(fileName: "a.bin", fileSize: 2500, mimeType: "image/png")
        new.metadata = ["kedge.tus.metadata": "filename YS5iaW4=", "empty": ""]
        new.declaredDigest = .init(bytes: [UInt8](repeating: 7, count: 32))
        let status = try await node.engine.createSession(new, owner: .tester)
        let view = try await node.engine.uploadView(of: status.sessionId, owner: .tester)
        #expect(view.id == status.sessionId)
        #expect(view.state == .open)
        #expect(view.offset == 0)
        #expect(view.fileSize == 2500)
        #expect(view.fileName == "a.bin")
        #expect(view.mimeType == "image/png")
        #expect(view.metadata == new.metadata)
        #expect(view.declaredDigest == new.declaredDigest)
        #expect(view.createdAt == fixture.clock.now())
        #expect(view.expiresAt == status.expiresAt)
        #expect(view.fileID == nil)
        #expect(view.finalDigest == nil)
    }

    @Test func `a hung append does not delay a view, which shows durable bytes alone`() async throws
    {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        let append = await hang(upload, after: 1700, on: node)
        // The first chunk is committed while the second one is received.
        let first = node
        #expect(try await eventually { try await view(of: upload, on: first).offset == 1000 })
        try await node.kill()
        append.cancel()
        await #expect(throws: EngineError.self) { try await append.value }
        node = try await fixture.start()
        #expect(try await view(of: upload, on: node).offset == 1000)
    }

    @Test func `a view that stops an append makes its bytes durable and returns a usable offset`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        let append = await hang(upload, after: 1700, on: node)
        let told = try await view(of: upload, on: node, stopsAppend: true)
        #expect(told.offset == 1700)
        await #expect(throws: EngineError(.writerReplaced)) { try await append.value }
        let end = try await node.append(upload.content.dropFirst(1700), to: upload, at: 1700)
        #expect(end == 2500)
    }

    @Test func `the view of an upload that became a file names the file`() async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.putAll(of: upload)
        let file = try await node.finish(upload)
        for _ in 0..<2 {
            let view = try await view(of: upload, on: node, stopsAppend: true)
            #expect(view.state == .completed)
            #expect(view.offset == 2500)
            #expect(view.fileSize == 2500)
            #expect(view.fileID == file.id)
            #expect(view.finalDigest == upload.digest)
            node = try await node.restart()
        }
    }

    @Test(arguments: [false, true])
    func `the view of an ended upload, or of another owner's, is refused`(stopsAppend: Bool)
        async throws
    {
        let node = try await fixture.start()
        let (canceled, expired) = (
            try await node.begin(sampleBytes(10)), try await node.begin(sampleBytes(10))
        )
        try await node.engine.cancelSession(canceled.id, owner: canceled.owner)
        await #expect(throws: EngineError(.sessionClosed)) {
            try await view(of: canceled, on: node, stopsAppend: stopsAppend)
        }
        await #expect(throws: EngineError(.sessionNotFound)) {
            try await node.engine.uploadView(
                of: expired.id, owner: .stranger, stopsAppend: stopsAppend)
        }
        fixture.clock.advance(by: node.engine.configuration.sessionLifetime + .seconds(1))
        await #expect(throws: EngineError(.sessionExpired)) {
            try await view(of: expired, on: node, stopsAppend: stopsAppend)
        }
    }
}
