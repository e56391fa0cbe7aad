import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// R53, R75, R128.
@Suite(.timeLimit(.minutes(1))) struct ExpiryTests {
    private let fixture: EngineEnvironment

    init() throws {
        fixture = try EngineEnvironment {
            $0.sessionLifetime = .seconds(100)
            $0.expiryGrace = .seconds(1000)
        }
    }

    /// A session of 2500 bytes with a chunk and a partial.
    private func started(on node: Node) async throws -> Upload {
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: upload)
        await node.breakOff(1, of: upload, after: 300)
        return upload
    }

    private func expectExpired(
        _ node: Node, _ upload: Upload, at location: SourceLocation = #_sourceLocation
    ) async {
        func expect(_ operation: () async throws -> Void) async {
            await #expect(throws: EngineError(.sessionExpired), sourceLocation: location) {
                try await operation()
            }
        }
        await expect { _ = try await node.status(of: upload) }
        await expect { _ = try await node.offset(of: upload) }
        await expect { try await node.put(2, of: upload) }
        // A repeated chunk is refused, too: its receipt would promise bytes that may soon be gone.
        await expect { try await node.put(0, of: upload) }
        await expect { _ = try await node.append([1], to: upload, at: 1300) }
        await expect { _ = try await node.finish(upload) }
    }

    @Test func `an append whose session expires while its body arrives is refused`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        var body = ScriptedBody(upload.content.prefix(300))
        body.beforePart = { [clock = fixture.clock] in clock.advance(by: .seconds(101)) }
        await #expect(throws: EngineError(.sessionExpired)) {
            _ = try await node.engine.append(
                AppendPut(offset: 0), to: upload.id, owner: upload.owner, body: body)
        }
    }

    @Test(arguments: [false, true], [false, true])
    func `a session whose time is over answers as expired`(
        swept: Bool, afterRestart: Bool
    ) async throws {
        var node = try await fixture.start()
        let upload = try await started(on: node)
        fixture.clock.advance(by: .seconds(101))
        if swept { try await node.engine.sweep() }
        if afterRestart { node = try await node.restart() }
        await expectExpired(node, upload)
    }

    @Test func `a session that became a file does not expire`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(500))
        try await node.putAll(of: upload)
        let file = try await node.finish(upload)
        fixture.clock.advance(by: .seconds(5000))
        try await node.engine.sweep()
        #expect(try await node.status(of: upload).state == .completed)
        #expect(try await node.finish(upload) == file)
        #expect(try await node.content(of: file) == upload.content)
    }

    @Test func `each chunk, partial and append postpones the expiry of a session`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(3500))
        let steps: [() async throws -> Void] = [
            { try await node.put(0, of: upload) },
            { await node.breakOff(2, of: upload, after: 10) },
            { _ = try await node.append(upload.chunk(1).prefix(500), to: upload, at: 1000) },
        ]
        for step in steps {
            fixture.clock.advance(by: .seconds(90))
            try await step()
            try await node.engine.sweep()
            let expected = fixture.clock.now().advanced(by: .seconds(100))
            #expect(try await node.status(of: upload).expiresAt == expected)
        }
        fixture.clock.advance(by: .seconds(101))
        await #expect(throws: EngineError(.sessionExpired)) { try await node.status(of: upload) }
    }

    @Test func `asking for the status alone does not keep a session alive`() async throws {
        let node = try await fixture.start()
        let upload = try await started(on: node)
        fixture.clock.advance(by: .seconds(90))
        _ = try await node.status(of: upload)
        fixture.clock.advance(by: .seconds(20))
        await #expect(throws: EngineError(.sessionExpired)) { try await node.status(of: upload) }
    }

    @Test func `an expired session keeps its bytes within the grace and is unknown after it`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await started(on: node)
        fixture.clock.advance(by: .seconds(1000))
        try await node.engine.sweep()
        #expect(try await node.bytes.stagingKeys() == [StagingKey(upload.id)])
        fixture.clock.advance(by: .seconds(200))
        try await node.engine.sweep()
        #expect(try await node.bytes.stagingKeys() == [])
        await #expect(throws: EngineError(.sessionNotFound)) { try await node.status(of: upload) }
    }

    @Test func `a sweep stops a writer that hangs in an expired session`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        let body = ScriptedBody(upload.content.prefix(300), announcing: 1000, ending: .hangs)
        let task = Task { try await node.put(upload.put(0), of: upload, body) }
        await body.watch.isHanging.wait()
        fixture.clock.advance(by: .seconds(101))
        try await node.engine.sweep()
        await #expect(throws: EngineError.self) { try await task.value }
        #expect(node.engine.activeWriteCount == 0)
    }
}
