import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// R1, R132, R134: a chunk interrupted part-way goes on inside the chunk.
@Suite(.timeLimit(.minutes(1))) struct PartialChunkTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    private static let cuts = [1, 255, 256, 257, 999]

    @Test(arguments: cuts, [false, true])
    func `a partial chunk goes on after its last durable byte`(
        cut: Int, afterRestart: Bool
    ) async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        await node.breakOff(1, of: upload, after: cut)
        if afterRestart { node = try await node.restart() }
        let status = try await node.status(of: upload)
        #expect(status.partialChunks == [PartialChunk(index: 1, receivedBytes: Int64(cut))])
        #expect(status.receivedBytes == Int64(cut))
        #expect(status.receivedChunks == [])
        let outcome = try await node.put(1, of: upload, from: cut)
        #expect(outcome.isCreated)
        #expect(try await node.status(of: upload).partialChunks == [])
        try await node.put(0, of: upload)
        try await node.put(2, of: upload)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    /// The link dies every few hundred bytes, and the server restarts now and then. No byte is sent
    /// twice.
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `an upload over a link that always breaks finishes and sends each byte once`(
        seed: UInt64
    ) async throws {
        var generator = SplitMix64(seed: seed)
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(3456, seed: seed))
        var sentByteCount = 0
        while true {
            let status = try await node.status(of: upload)
            let open = (0..<upload.chunkCount).filter { !status.receivedChunks.contains($0) }
            guard let index = open.randomElement(using: &generator) else { break }
            let partial = status.partialChunks.first { $0.index == index }
            let start = Int(partial?.receivedBytes ?? 0)
            let rest = upload.chunk(index).count - start
            let count = Int.random(in: 1...400, using: &generator)
            sentByteCount += min(rest, count)
            if count >= rest {
                try await node.put(index, of: upload, from: start)
            } else {
                await node.breakOff(index, of: upload, from: start, after: count)
            }
            if Int.random(in: 0..<6, using: &generator) == 0 { node = try await node.restart() }
        }
        #expect(sentByteCount == upload.content.count)
        let file = try await node.finish(upload)
        #expect(file.digest == upload.digest)
        #expect(try await node.content(of: file) == upload.content)
    }

    @Test(arguments: [0, 1, 299, 300])
    func `a client that starts before the partial's end is accepted`(start: Int) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        await node.breakOff(0, of: upload, after: 300)
        #expect(try await node.put(0, of: upload, from: start).isCreated)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test(arguments: [0, 100, 299, 300])
    func `a partial does not shrink when a repetition breaks off inside it`(
        count: Int
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        await node.breakOff(0, of: upload, after: 300)
        await node.breakOff(0, of: upload, after: count)
        #expect(try await node.status(of: upload).partialChunks.map(\.receivedBytes) == [300])
        await node.breakOff(0, of: upload, after: 301)
        #expect(try await node.status(of: upload).partialChunks.map(\.receivedBytes) == [301])
    }

    @Test(arguments: [(0, 1, 0), (300, 301, 300), (300, 999, 300)])
    func `a gap is refused with the offset that is expected`(
        partial: Int, start: Int, expected: Int64
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        if partial > 0 { await node.breakOff(1, of: upload, after: partial) }
        let body = ScriptedBody(upload.chunk(1).dropFirst(start))
        let error = await #expect(throws: EngineError.self) {
            try await node.put(upload.put(1, from: start), of: upload, body)
        }
        #expect(error?.code == .offsetMismatch)
        #expect(error?.expectedOffset == 1000 + expected)
        #expect(body.watch.readerCount == 0)
    }

    @Test func `a chunk with another announced digest starts over`() async throws {
        let node = try await fixture.start()
        let old = try await node.begin(sampleBytes(1000, seed: 1))
        await node.breakOff(0, of: old, after: 300)
        // The session's file has other content now.
        let new = Upload(
            id: old.id, owner: old.owner, content: sampleBytes(1000, seed: 2), chunkSize: 1000)
        let error = await #expect(throws: EngineError.self) {
            try await node.put(0, of: new, from: 300)
        }
        #expect(error?.code == .offsetMismatch)
        #expect(error?.expectedOffset == 0)
        #expect(try await node.put(0, of: new).isCreated)
        #expect(try await node.content(of: try await node.finish(new)) == new.content)
    }

    @Test func `the digest detects wrong bytes in a partial`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        var wrong = upload.chunk(0)
        wrong[10] ^= 1
        let broken = ScriptedBody(wrong.prefix(300), announcing: 1000, ending: .breaksOff)
        await #expect(throws: EngineError.self) {
            try await node.put(upload.put(0), of: upload, broken)
        }
        await #expect(throws: EngineError(.chunkHashMismatch)) {
            try await node.put(0, of: upload, from: 300)
        }
        #expect(try await node.status(of: upload).partialChunks == [])
        #expect(try await node.put(0, of: upload).isCreated)
    }

    @Test func `nothing is kept of a body that broke before its first byte`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        await node.breakOff(0, of: upload, after: 0)
        #expect(try await node.status(of: upload).partialChunks == [])
        #expect(try await node.put(0, of: upload).isCreated)
    }

    @Test func `partials of several chunks stand side by side`() async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        await node.breakOff(2, of: upload, after: 20)
        await node.breakOff(0, of: upload, after: 10)
        node = try await node.restart()
        #expect(
            try await node.status(of: upload).partialChunks == [
                PartialChunk(index: 0, receivedBytes: 10),
                PartialChunk(index: 2, receivedBytes: 20),
            ])
    }
}
