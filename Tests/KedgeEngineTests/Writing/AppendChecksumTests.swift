import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// An append with a checksum counts as a whole at its end, or not at all.
@Suite(.timeLimit(.minutes(1))) struct AppendChecksumTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    @Test(arguments: [
        (0, 300), (0, 1000), (0, 2500), (300, 1000), (300, 1300), (1000, 2500), (1300, 2500),
    ])
    func `the right checksum makes the append count`(start: Int, end: Int) async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        _ = try await node.append(upload.content.prefix(start), to: upload, at: 0)
        let piece = upload.content[start..<end]
        let offset = try await node.append(
            piece, to: upload, at: start, checksum: SHA256Hasher.digest(of: Array(piece)))
        #expect(offset == Int64(end))
        node = try await node.restart()
        #expect(try await node.offset(of: upload) == Int64(end))
        _ = try await node.append(upload.content.dropFirst(end), to: upload, at: end)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test(arguments: [0, 300, 1000, 1300], [ScriptedBody.Ending.ends, .breaksOff])
    func `a wrong checksum or a broken body leaves everything as it was`(
        start: Int, ending: ScriptedBody.Ending
    ) async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        _ = try await node.append(upload.content.prefix(start), to: upload, at: 0)
        let before = try await node.status(of: upload)
        let wrong = SHA256Hasher.digest(of: [1])
        let piece = upload.content[start..<2300]
        let error = await #expect(throws: EngineError.self) {
            try await node.append(
                piece, to: upload, at: start, checksum: wrong, announcing: piece.count,
                ending: ending)
        }
        let isWrong = ending == .ends
        #expect(error?.code == (isWrong ? .chunkHashMismatch : .lengthMismatch))
        #expect(error?.expectedDigest == (isWrong ? wrong : nil))
        #expect(error?.actualDigest == (isWrong ? SHA256Hasher.digest(of: Array(piece)) : nil))
        #expect(try await node.status(of: upload) == before)
        node = try await node.restart()
        #expect(try await node.status(of: upload).receivedBytes == before.receivedBytes)
        _ = try await node.append(upload.content.dropFirst(start), to: upload, at: start)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `an append of unknown size that outgrows the limit is too large and does not count`()
        async throws
    {
        let fixture = try EngineEnvironment { $0.maxFileSize = 2500 }
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500), sized: false)
        let error = await #expect(throws: EngineError.self) {
            try await node.append(
                upload.content, to: upload, at: 0, checksum: upload.digest, ending: .goesOn)
        }
        #expect(error?.code == .fileTooLarge)
        let status = try await node.status(of: upload)
        #expect(status.receivedBytes == 0)
    }

    @Test func `no byte of an append counts before its checksum is verified`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        let body = ScriptedBody(upload.content.prefix(2300), announcing: 2500, ending: .hangs)
        let task = Task {
            try await node.engine.append(
                AppendPut(offset: 0, checksum: .sha256(upload.digest)), to: upload.id,
                owner: upload.owner, body: body)
        }
        await body.watch.isHanging.wait()
        #expect(try await node.status(of: upload).receivedBytes == 0)
        task.cancel()
        await #expect(throws: EngineError.self) { try await task.value }
        #expect(try await node.status(of: upload).receivedBytes == 0)
    }

    @Test(arguments: [1300, 2000])
    func `a completing append with a wrong checksum does not fix the size`(
        byteCount: Int
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(byteCount), sized: false)
        await #expect(throws: EngineError(.chunkHashMismatch)) {
            try await node.append(
                upload.content.dropLast(7), to: upload, at: 0, checksum: upload.digest,
                completes: true)
        }
        #expect(try await node.status(of: upload).fileSize == nil)
        let end = try await node.append(
            upload.content, to: upload, at: 0, checksum: upload.digest, completes: true)
        #expect(end == Int64(byteCount))
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }
}
