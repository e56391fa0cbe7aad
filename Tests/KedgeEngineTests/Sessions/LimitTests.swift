import KedgeEngine
import KedgeModel
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct LimitTests {
    /// Starts uploads that hang, one for each chunk.
    private func hang(
        _ count: Int, of upload: Upload, after byteCount: Int, on node: Node
    ) async -> [Task<ChunkPutOutcome, any Error>] {
        var tasks: [Task<ChunkPutOutcome, any Error>] = []
        for index in 0..<count {
            let chunk = upload.chunk(index)
            let body = ScriptedBody(
                chunk.prefix(byteCount), announcing: chunk.count, ending: .hangs)
            tasks.append(Task { try await node.put(upload.put(index), of: upload, body) })
            await body.watch.isHanging.wait()
        }
        return tasks
    }

    @Test func `a write beyond the limit is refused as busy, and its body is not read`()
        async throws
    {
        let fixture = try EngineEnvironment { $0.maxConcurrentWrites = 3 }
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(5000))
        let tasks = await hang(3, of: upload, after: 10, on: node)
        #expect(node.engine.activeWriteCount == 3)
        let body = ScriptedBody(upload.chunk(3), announcing: 1000)
        await #expect(throws: EngineError(.busy)) {
            try await node.put(upload.put(3), of: upload, body)
        }
        #expect(body.watch.readerCount == 0)
        // Requests without a body are still answered.
        #expect(try await node.status(of: upload).state == .open)
        tasks[0].cancel()
        _ = await tasks[0].result
        try await node.put(3, of: upload)
        for task in tasks { task.cancel() }
        for task in tasks { _ = await task.result }
        #expect(node.engine.activeWriteCount == 0)
    }

    @Test(arguments: [0, 1])
    func `an operation that fails releases its place`(offset: Int) async throws {
        let fixture = try EngineEnvironment { $0.maxConcurrentWrites = 1 }
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        for _ in 0..<3 {
            await node.breakOff(0, of: upload, from: offset, after: 0)
            await #expect(throws: EngineError.self) {
                try await node.append([], to: upload, at: 77)
            }
        }
        #expect(node.engine.activeWriteCount == 0)
        try await node.put(0, of: upload)
    }

    /// A graceful stop turns bytes under way into partials, and the next process goes on.
    @Test func `a stop saves the bytes of its writers and refuses new writers`() async throws {
        let fixture = try EngineEnvironment()
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(3500))
        let tasks = await hang(3, of: upload, after: 400, on: node)
        await node.engine.interruptWriters()
        for task in tasks {
            await #expect(throws: EngineError(.unavailable)) { try await task.value }
        }
        #expect(node.engine.activeWriteCount == 0)
        await #expect(throws: EngineError(.unavailable)) { try await node.put(3, of: upload) }
        node = try await node.restart()
        let partials = try await node.status(of: upload).partialChunks
        #expect(partials == (0..<3).map { PartialChunk(index: $0, receivedBytes: 400) })
        for index in 0..<3 { try await node.put(index, of: upload, from: 400) }
        try await node.put(3, of: upload)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `a stop saves the bytes of an append`() async throws {
        let fixture = try EngineEnvironment()
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(3500))
        let body = ScriptedBody(upload.content.prefix(1300), announcing: 3500, ending: .hangs)
        let task = Task { [node] in
            try await node.engine.append(
                AppendPut(offset: 0), to: upload.id, owner: upload.owner, body: body)
        }
        await body.watch.isHanging.wait()
        await node.engine.interruptWriters()
        let error = await #expect(throws: EngineError.self) { try await task.value }
        // Either of the append's two slots may be stopped first.
        #expect(error?.code == .unavailable)
        node = try await node.restart()
        #expect(try await node.offset(of: upload) == 1300)
        _ = try await node.append(upload.content.dropFirst(1300), to: upload, at: 1300)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `closing an engine ends its writers, and its stores can be opened again`()
        async throws
    {
        let fixture = try EngineEnvironment()
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1500))
        let tasks = await hang(1, of: upload, after: 400, on: node)
        try await node.engine.close()
        await #expect(throws: EngineError(.unavailable)) { try await tasks[0].value }
        await #expect(throws: EngineError(.unavailable)) { try await node.put(0, of: upload) }
        let next = try await fixture.start()
        #expect(try await next.status(of: upload).partialChunks.map(\.receivedBytes) == [400])
    }

    /// A cancelled request is an interruption like any other.
    @Test func `the bytes of a cancelled request are kept`() async throws {
        let fixture = try EngineEnvironment()
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1500))
        let tasks = await hang(1, of: upload, after: 400, on: node)
        tasks[0].cancel()
        await #expect(throws: EngineError(.unavailable)) { try await tasks[0].value }
        #expect(try await node.status(of: upload).partialChunks.map(\.receivedBytes) == [400])
    }
}
