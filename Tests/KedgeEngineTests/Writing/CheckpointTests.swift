import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// R1, R132: even a killed process costs the client seconds of sending, not a whole chunk.
///
/// Bytes come in parts of 256. The last part before a stall is not written yet.
@Suite(.timeLimit(.minutes(1))) struct CheckpointTests {
    enum RequestKind: CaseIterable, Sendable {
        case chunk
        case append
    }

    /// Makes an environment where time alone causes checkpoints, unless a byte count is given.
    private static func fixture(afterBytes byteCount: Int64 = 1 << 20) throws -> EngineEnvironment {
        try EngineEnvironment {
            $0.minCheckpointByteCount = 256
            $0.checkpointByteCount = byteCount
        }
    }

    /// Sends the first 700 bytes of the upload, then nothing more.
    private func stall(
        _ upload: Upload, by request: RequestKind, on node: Node, checksum: SHA256Digest? = nil
    ) async -> Task<Void, any Error> {
        let body = ScriptedBody(upload.content.prefix(700), announcing: 1000, ending: .hangs)
        let task = Task {
            switch request {
            case .chunk: _ = try await node.put(upload.put(0), of: upload, body)
            case .append:
                _ = try await node.engine.append(
                    AppendPut(offset: 0, checksum: checksum.map { .sha256($0) }), to: upload.id,
                    owner: upload.owner,
                    body: body)
            }
        }
        await body.watch.isHanging.wait()
        return task
    }

    /// Kills the process under the stalled request and starts the next one.
    private func restart(_ node: Node, under stalled: Task<Void, any Error>) async throws -> Node {
        try await node.kill()
        stalled.cancel()
        await #expect(throws: EngineError.self) { try await stalled.value }
        return try await node.fixture.start()
    }

    /// Sends the rest from the byte that the service names.
    private func expectContinuation(
        _ upload: Upload, at offset: Int, by request: RequestKind, on node: Node
    ) async throws {
        let partials = try await node.status(of: upload).partialChunks
        #expect(partials == [PartialChunk(index: 0, receivedBytes: Int64(offset))])
        switch request {
        case .chunk: try await node.put(0, of: upload, from: offset)
        case .append:
            #expect(try await node.offset(of: upload) == offset)
            _ = try await node.append(
                upload.chunk(0).dropFirst(offset), to: upload, at: offset)
        }
        try await node.put(1, of: upload)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test(arguments: RequestKind.allCases)
    func `the bytes of a stalled body are recorded after the interval and survive a kill`(
        request: RequestKind
    ) async throws {
        let fixture = try Self.fixture()
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1500))
        let stalled = await stall(upload, by: request, on: node)
        #expect(try await node.status(of: upload).receivedBytes == 0)
        // The wait for the interval may begin only after the time has moved.
        while try await node.status(of: upload).receivedBytes < 512 {
            fixture.timer.advance(by: .seconds(2))
            await Task.yield()
        }
        node = try await restart(node, under: stalled)
        try await expectContinuation(upload, at: 512, by: request, on: node)
    }

    /// The later chunk waits for its step in the file's hash. Its bytes are recorded meanwhile.
    @Test func `a chunk that stalls while the one before it hangs is recorded all the same`()
        async throws
    {
        let fixture = try EngineEnvironment {
            $0.minCheckpointByteCount = 256
            $0.hashStepLimits.timeout = .milliseconds(100)
        }
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2000))
        let bodies = [0, 1].map { index in
            ScriptedBody(upload.chunk(index).prefix(700), announcing: 1000, ending: .hangs)
        }
        let stalled = [0, 1].map { index in
            Task { try await node.put(upload.put(index), of: upload, bodies[index]) }
        }
        while try await node.status(of: upload).partialChunks.map(\.receivedBytes) != [512, 512] {
            fixture.timer.advance(by: .seconds(2))
            await Task.yield()
        }
        for task in stalled { task.cancel() }
        for task in stalled { await #expect(throws: EngineError.self) { try await task.value } }
        for index in [0, 1] { try await node.put(index, of: upload, from: 700) }
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test(arguments: RequestKind.allCases)
    func `many new bytes are recorded without waiting for the interval`(request: RequestKind)
        async throws
    {
        let fixture = try Self.fixture(afterBytes: 400)
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1500))
        let isSaved = Gate()
        node.metadata.before { if $0 == .savedPartial { isSaved.open() } }
        let stalled = await stall(upload, by: request, on: node)
        await isSaved.wait()
        node = try await restart(node, under: stalled)
        try await expectContinuation(upload, at: 512, by: request, on: node)
    }

    /// An append with a checksum counts as a whole at its end, or not at all.
    @Test func `an append with a checksum records nothing on its way`() async throws {
        let fixture = try Self.fixture(afterBytes: 256)
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1500))
        let stalled = await stall(upload, by: .append, on: node, checksum: upload.digest)
        node = try await restart(node, under: stalled)
        #expect(try await node.status(of: upload).receivedBytes == 0)
    }

    @Test func `a chunk that arrives without a pause costs one sync`() async throws {
        let fixture = try Self.fixture()
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: upload)
        let before = fixture.disk.counts.syncs
        try await node.put(1, of: upload)
        #expect(fixture.disk.counts.syncs == before + 1)
    }

    @Test func `a chunk whose digest is wrong in the end loses its checkpoint`() async throws {
        let fixture = try Self.fixture(afterBytes: 256)
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1500))
        let wrong = upload.put(0, digest: SHA256Hasher.digest(of: [1]))
        await #expect(throws: EngineError(.chunkHashMismatch)) {
            try await node.put(wrong, of: upload, ScriptedBody(upload.chunk(0)))
        }
        #expect(try await node.status(of: upload).receivedBytes == 0)
        #expect(try await node.put(0, of: upload).isCreated)
    }

    @Test func `a failed sync at a checkpoint acknowledges nothing, and sending again works`()
        async throws
    {
        let fixture = try Self.fixture(afterBytes: 256)
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1500))
        fixture.disk.fail(.sync)
        await #expect(throws: EngineError(.internalError)) { try await node.put(0, of: upload) }
        #expect(try await node.status(of: upload).receivedBytes == 0)
        try await node.putAll(of: upload)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `a checkpoint whose row is refused does not stop the chunk`() async throws {
        let fixture = try Self.fixture(afterBytes: 256)
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1500))
        let refusalCount = Shared(0)
        node.metadata.before { call in
            guard call == .savePartial else { return }
            _ = refusalCount.increment()
            throw MetadataError.unavailable("planned")
        }
        #expect(try await node.put(0, of: upload).isCreated)
        #expect(refusalCount.value > 0)
    }

    /// The engine writes a slow link's bytes in small parts, so that it can record them soon.
    @Test(arguments: [(Duration.zero, 6), (.seconds(3), 16)])
    func `the engine gathers bytes into large writes while the link is quick`(
        pause: Duration, writeCount: Int
    ) async throws {
        let fixture = try EngineEnvironment {
            $0.bufferCapacity = 1024
            $0.minCheckpointByteCount = 256
        }
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(4096), chunkSize: 4096)
        var body = ScriptedBody(upload.content, announcing: 4096)
        body.beforePart = { fixture.timer.advance(by: pause) }
        let before = fixture.disk.counts.writes
        #expect(try await node.put(upload.put(0), of: upload, body).isCreated)
        #expect(fixture.disk.counts.writes == before + writeCount)
    }
}
