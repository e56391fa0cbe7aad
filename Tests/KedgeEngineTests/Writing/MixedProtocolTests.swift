import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// Uploads that one front end begins and another finishes.
@Suite(.timeLimit(.minutes(1))) struct MixedProtocolTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    @Test func `an append passes over chunks that a native client had sent`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(4500))
        for index in [1, 3] { try await node.put(index, of: upload) }
        let end = try await node.append(upload.content, to: upload, at: 0)
        #expect(end == 4500)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test
    func `an append of other bytes over a native chunk conflicts, and earlier bytes stay`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(3500))
        try await node.put(1, of: upload)
        var other = upload.content
        other[1500] ^= 1
        let error = await #expect(throws: EngineError.self) {
            try await node.append(other, to: upload, at: 0)
        }
        #expect(error?.code == .chunkConflict)
        #expect(error?.expectedDigest == SHA256Hasher.digest(of: upload.chunk(1)))
        #expect(try await node.status(of: upload).receivedChunks == [0, 1])
        #expect(try await node.offset(of: upload) == 2000)
        _ = try await node.append(upload.content.dropFirst(2000), to: upload, at: 2000)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `an append goes on inside a chunk that a native client began`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        await node.breakOff(0, of: upload, after: 300)
        #expect(try await node.offset(of: upload) == 300)
        _ = try await node.append(upload.content.dropFirst(300), to: upload, at: 300)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `a native client goes on inside a chunk that an append began`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        _ = try await node.append(upload.content.prefix(1300), to: upload, at: 0)
        let status = try await node.status(of: upload)
        #expect(status.receivedChunks == [0])
        #expect(status.partialChunks == [PartialChunk(index: 1, receivedBytes: 300)])
        #expect(try await node.put(1, of: upload, from: 300).isCreated)
        #expect(try await node.put(2, of: upload).isCreated)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `any mixture of appends and chunks makes the file`(seed: UInt64) async throws {
        var generator = SplitMix64(seed: seed)
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(4321, seed: seed), chunkSize: 700)
        while true {
            let status = try await node.status(of: upload)
            let open = (0..<upload.chunkCount).filter { !status.receivedChunks.contains($0) }
            guard let index = open.randomElement(using: &generator) else { break }
            switch Int.random(in: 0..<5, using: &generator) {
            case 0, 1:
                let offset = Int(try await node.offset(of: upload))
                let rest = upload.content[offset...]
                let count = Int.random(in: 1...1500, using: &generator)
                do {
                    _ = try await node.append(rest.prefix(count), to: upload, at: offset)
                } catch let error as EngineError where error.code == .offsetMismatch {
                    // The append met a partial on its way. The bytes before it count.
                    #expect(try await node.offset(of: upload) > Int64(offset))
                }
            case 2:
                let length = upload.chunk(index).count
                let cut = Int.random(in: 1...length, using: &generator)
                await node.breakOff(index, of: upload, after: cut)
            case 3: node = try await node.restart()
            default: try await node.put(index, of: upload)
            }
        }
        let file = try await node.finish(upload)
        #expect(file.digest == upload.digest)
        #expect(try await node.content(of: file) == upload.content)
    }

    @Test func `a session without a size takes native chunks too`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500), sized: false)
        #expect(try await node.put(1, of: upload).receipt.totalChunks == nil)
        let end = try await node.append(upload.content, to: upload, at: 0, completes: true)
        #expect(end == 2500)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `completing before a native chunk's end is a mismatch and keeps everything`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(3000), sized: false)
        try await node.put(2, of: upload)
        let error = await #expect(throws: EngineError.self) {
            try await node.append(
                upload.content.prefix(1300), to: upload, at: 0, completes: true)
        }
        #expect(error?.code == .sizeMismatch)
        let known = try await node.offset(of: upload)
        #expect(known == 1300)
        let offset = Int(try await node.offset(of: upload))
        _ = try await node.append(
            upload.content.dropFirst(offset), to: upload, at: offset, completes: true)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    /// With a checksum nothing counts before the end, so a refusal half-way would repeat for ever.
    @Test(arguments: [false, true])
    func `an append passes over a partial that a native client left further on`(
        withChecksum: Bool
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        await node.breakOff(1, of: upload, after: 300)
        let end = try await node.append(
            upload.content, to: upload, at: 0, checksum: withChecksum ? upload.digest : nil)
        #expect(end == 2500)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `an append replaces a later partial that has other bytes`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        var other = upload.chunk(1)
        other[10] ^= 1
        let put = upload.put(1, digest: SHA256Hasher.digest(of: other))
        let broken = ScriptedBody(other.prefix(300), announcing: 1000, ending: .breaksOff)
        await #expect(throws: EngineError.self) { try await node.put(put, of: upload, broken) }
        // The refused append sets the partial aside, and the next append succeeds.
        let error = await #expect(throws: EngineError.self) {
            try await node.append(upload.content, to: upload, at: 0)
        }
        #expect(error?.code == .offsetMismatch)
        #expect(error?.expectedOffset == 1000)
        #expect(try await node.status(of: upload).receivedChunks == [0])
        _ = try await node.append(upload.content.dropFirst(1000), to: upload, at: 1000)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    /// A body may report its end together with its last bytes.
    @Test(arguments: [1300, 2000], [false, true])
    func `an append may complete at the end of what a native client left`(
        byteCount: Int, tellsEndAtOnce: Bool
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500), sized: false)
        await node.breakOff(1, of: upload, after: byteCount - 1000)
        var body = ScriptedBody(upload.content.prefix(byteCount))
        body.tellsEndAtOnce = tellsEndAtOnce
        let end = try await node.engine.append(
            AppendPut(offset: 0, completes: true), to: upload.id, owner: upload.owner, body: body)
        #expect(end == Int64(byteCount))
        let file = try await node.finish(upload)
        let content = try await node.content(of: file)
        #expect(content == Array(upload.content.prefix(byteCount)))
    }
}
