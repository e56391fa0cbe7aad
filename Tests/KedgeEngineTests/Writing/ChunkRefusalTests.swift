import KedgeEngine
import KedgeHash
import KedgeModel
import Testing

/// Refusals of bad chunk uploads. After each one, all acknowledged bytes are still there.
@Suite(.timeLimit(.minutes(1))) struct ChunkRefusalTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    /// A session of 2500 bytes with its first chunk received and 100 bytes of the second.
    private func started() async throws -> (node: Node, upload: Upload) {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: upload)
        await node.breakOff(1, of: upload, after: 100)
        return (node, upload)
    }

    private func expectUntouched(
        _ node: Node, _ upload: Upload, at location: SourceLocation = #_sourceLocation
    ) async throws {
        let status = try await node.status(of: upload)
        #expect(status.receivedChunks == [0], sourceLocation: location)
        let partials = [PartialChunk(index: 1, receivedBytes: 100)]
        #expect(status.partialChunks == partials, sourceLocation: location)
    }

    @Test(arguments: [-1, 3, 1 << 31, 1 << 53, Int.max, Int.min])
    func `an index outside the file is out of bounds`(index: Int) async throws {
        let (node, upload) = try await started()
        var put = upload.put(2)
        put.index = index
        await #expect(throws: EngineError(.chunkOutOfBounds)) {
            try await node.put(put, of: upload, ScriptedBody(upload.chunk(2)))
        }
        try await expectUntouched(node, upload)
    }

    /// R56.
    @Test(arguments: [
        "bytes 0-999/2500", "bytes 999-1500/2500", "bytes 1000-2000/2500", "bytes 999-1999/2500",
        "bytes 1000-1999/2501", "bytes 1000-1999/*", "bytes */2500", "bytes 2000-2499/2500",
        "bytes 1000-9223372036854775806/9223372036854775807", "bytes 0-0/1",
    ])
    func `a range that is not this chunk's is a mismatch`(text: String) async throws {
        let (node, upload) = try await started()
        var put = upload.put(1)
        put.contentRange = try #require(ContentRange(text))
        await #expect(throws: EngineError(.rangeMismatch)) {
            try await node.put(put, of: upload, ScriptedBody(upload.chunk(1)))
        }
        try await expectUntouched(node, upload)
    }

    /// R57.
    @Test(arguments: [0, 999, 1001, Int.max])
    func `a body announced with another length than its range is a mismatch`(
        count: Int
    ) async throws {
        let (node, upload) = try await started()
        let body = ScriptedBody(upload.chunk(1), announcing: count)
        await #expect(throws: EngineError(.lengthMismatch)) {
            try await node.put(upload.put(1), of: upload, body)
        }
        #expect(body.watch.readerCount == 0)
        try await expectUntouched(node, upload)
    }

    /// R20: the body is shorter than announced. The bytes that arrived are kept.
    @Test func `a body that ends early is a mismatch, and its bytes count`() async throws {
        let (node, upload) = try await started()
        await #expect(throws: EngineError(.lengthMismatch)) {
            try await node.put(1, of: upload, from: 100, sending: 400)
        }
        let status = try await node.status(of: upload)
        #expect(status.partialChunks == [PartialChunk(index: 1, receivedBytes: 500)])
    }

    /// R20: the body is longer than announced.
    @Test(arguments: [ScriptedBody.Ending.ends, .goesOn])
    func `a body that goes on after the chunk is a mismatch and commits nothing`(
        ending: ScriptedBody.Ending
    ) async throws {
        let (node, upload) = try await started()
        let rest = upload.chunk(1).dropFirst(100) + [1]
        await #expect(throws: EngineError(.lengthMismatch)) {
            try await node.put(
                upload.put(1, from: 100), of: upload, ScriptedBody(rest, ending: ending))
        }
        try await expectUntouched(node, upload)
        try await node.put(1, of: upload, from: 100)
        try await node.put(2, of: upload)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    /// R15, R16, R137: only that chunk's bytes are lost.
    @Test(arguments: [0, 99])
    func `a wrong digest is refused and loses that chunk's partial alone`(
        wrongByte: Int
    ) async throws {
        let (node, upload) = try await started()
        await node.breakOff(2, of: upload, after: 50)
        var wrong = upload.chunk(1)
        wrong[100 + wrongByte] ^= 0x40
        let put = upload.put(1, from: 100)
        let error = await #expect(throws: EngineError.self) {
            try await node.put(put, of: upload, ScriptedBody(wrong.dropFirst(100)))
        }
        #expect(error?.code == .chunkHashMismatch)
        #expect(error?.expectedDigest == put.digest)
        #expect(error?.actualDigest == SHA256Hasher.digest(of: wrong))
        let status = try await node.status(of: upload)
        #expect(status.receivedChunks == [0])
        #expect(status.partialChunks == [PartialChunk(index: 2, receivedBytes: 50)])
        try await node.put(1, of: upload)
        try await node.put(2, of: upload, from: 50)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `an unknown session is not found`() async throws {
        let (node, upload) = try await started()
        let unknown = Upload(
            id: .random(), owner: .tester, content: upload.content, chunkSize: 1000)
        let body = ScriptedBody(upload.chunk(1), announcing: 1000)
        await #expect(throws: EngineError(.sessionNotFound)) {
            try await node.put(upload.put(1), of: unknown, body)
        }
        #expect(body.watch.readerCount == 0)
    }

    @Test func `a chunk of an empty file is out of bounds`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin([])
        let range = ContentRange(range: nil, total: 0)
        let put = ChunkPut(index: 0, contentRange: range, digest: SHA256Hasher.digest(of: []))
        await #expect(throws: EngineError(.chunkOutOfBounds)) {
            try await node.put(put, of: upload, ScriptedBody([]))
        }
    }

    /// A connection that dies between the chunk's last byte and the body's end.
    @Test func `a body of announced length needs no end after its last byte`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        await node.breakOff(0, of: upload, after: 1000)
        #expect(try await node.status(of: upload).receivedChunks == [0])
    }

    @Test func `an open-ended body that breaks off after its last byte loses nothing`() async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        let body = ScriptedBody(upload.chunk(0), ending: .breaksOff)
        #expect(try await node.put(upload.put(0), of: upload, body).isCreated)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }
}
