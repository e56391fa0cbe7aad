import KedgeEngine
import KedgeModel
import KedgeTesting
import Testing

/// An append receives a chunk while the one before it is committed.
@Suite(.timeLimit(.minutes(1))) struct AppendPipelineTests {
    private let fixture: EngineEnvironment

    init() throws {
        fixture = try EngineEnvironment { $0.minCheckpointByteCount = 256 }
    }

    @Test func `a chunk is received during a commit, and recorded only after it`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        let (gate, isCommitting) = (Gate(), Gate())
        node.metadata.before { call in
            guard call == .commit else { return }
            isCommitting.open()
            await gate.wait()
        }
        let body = ScriptedBody(upload.content.prefix(1700), ending: .hangs)
        let append = Task {
            try await node.engine.append(
                AppendPut(offset: 0), to: upload.id, owner: upload.owner, body: body)
        }
        await isCommitting.wait()
        await body.watch.isHanging.wait()
        // A checkpoint of the second chunk is due several times.
        for _ in 0..<20 {
            fixture.timer.advance(by: .seconds(2))
            await Task.yield()
        }
        let status = try await node.status(of: upload)
        #expect(status.receivedBytes == 0)
        #expect(status.partialChunks.isEmpty)
        gate.open()
        #expect(try await eventually { try await node.status(of: upload).receivedBytes >= 1000 })
        append.cancel()
        await #expect(throws: (any Error).self) { try await append.value }
        #expect(try await node.offset(of: upload) == 1700)
        _ = try await node.append(upload.content[1700...], to: upload, at: 1700)
        #expect(try await node.finish(upload).digest == upload.digest)
    }

    @Test func `no bytes are recorded after a chunk whose commit failed`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        let failures = Shared(0)
        node.metadata.before { call in
            if call == .commit, failures.increment() == 1 {
                throw MetadataError.unavailable("planned")
            }
        }
        let body = ScriptedBody(upload.content.prefix(1700), ending: .hangs)
        // The failed commit stops the append, although its body hangs.
        await #expect(throws: EngineError(.unavailable)) {
            try await node.engine.append(
                AppendPut(offset: 0), to: upload.id, owner: upload.owner, body: body)
        }
        let status = try await node.status(of: upload)
        #expect(status.receivedBytes == 0)
        #expect(status.partialChunks.isEmpty)
        #expect(try await node.offset(of: upload) == 0)
        // Other bytes may follow now: none of the failed append is in their way.
        let other = Upload(
            id: upload.id, owner: upload.owner, content: sampleBytes(2500, seed: 5),
            chunkSize: 1000)
        _ = try await node.append(other.content, to: other, at: 0)
        #expect(try await node.finish(other).digest == other.digest)
    }
}
