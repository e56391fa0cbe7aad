import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// Bodies that end before their chunk does.
@Suite(.timeLimit(.minutes(1))) struct PartialBodyTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    @Test(arguments: [false, true])
    func `a chunk sent in parts is verified and committed with the last part`(
        restarting: Bool
    ) async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        for part in [0..<1, 1..<400, 400..<999] {
            let outcome = try await node.putPart(1, of: upload, part)
            #expect(outcome.partByteCount == Int64(part.upperBound))
            if restarting { node = try await node.restart() }
            let status = try await node.status(of: upload)
            let count = Int64(part.upperBound)
            #expect(status.partialChunks == [PartialChunk(index: 1, receivedBytes: count)])
            #expect(status.receivedChunks == [])
        }
        #expect(try await node.put(1, of: upload, from: 999).isCreated)
        try await node.put(0, of: upload)
        try await node.put(2, of: upload)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `a repeated part is acknowledged without reading its body`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        try await node.putPart(0, of: upload, 0..<300)
        try await node.putPart(0, of: upload, 300..<600)
        for part in [0..<300, 300..<600, 100..<500] {
            let put = upload.put(0, from: part.lowerBound, upTo: part.upperBound)
            let body = ScriptedBody(upload.content[part])
            #expect(try await node.put(put, of: upload, body).partByteCount == 600)
            #expect(body.watch.readerCount == 0)
        }
        // These parts overlap the received bytes and go on behind them.
        #expect(try await node.putPart(0, of: upload, 500..<700).partByteCount == 700)
        #expect(try await node.putPart(0, of: upload, 0..<800).partByteCount == 800)
        try await node.put(0, of: upload, from: 800)
        // This part belongs to a committed chunk.
        let again = try await node.putPart(0, of: upload, 300..<600)
        #expect(again.partByteCount == nil && !again.isCreated)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `a part that starts beyond the received bytes is refused with the expected offset`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.putPart(1, of: upload, 0..<300)
        let error = await #expect(throws: EngineError.self) {
            try await node.putPart(1, of: upload, 301..<600)
        }
        #expect(error?.code == .offsetMismatch)
        #expect(error?.expectedOffset == 1300)
    }

    @Test(arguments: [0..<1001, 500..<1001, 0..<2500])
    func `a part that goes beyond its chunk is refused`(part: Range<Int>) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        let put = upload.put(0, from: part.lowerBound, upTo: part.upperBound)
        await #expect(throws: EngineError(.rangeMismatch)) {
            try await node.put(put, of: upload, ScriptedBody(upload.content[part]))
        }
    }

    @Test func `a digest of the body does not replace the chunk's digest`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        var put = upload.put(0, upTo: 300)
        put.isBodyDigest = true
        await #expect(throws: EngineError(.chunkHashRequired)) {
            try await node.put(put, of: upload, ScriptedBody(upload.content[..<300]))
        }
    }

    /// The bytes that arrived count, and the status announces no more.
    @Test func `an interrupted part goes on where it broke off`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        for (start, count) in [(0, 200), (200, 50)] {
            let body = ScriptedBody(
                upload.content[start..<start + count], announcing: 600 - start, ending: .breaksOff)
            await #expect(throws: (any Error).self) {
                try await node.put(upload.put(0, from: start, upTo: 600), of: upload, body)
            }
        }
        #expect(try await node.status(of: upload).partialChunks.map(\.receivedBytes) == [250])
        #expect(try await node.putPart(0, of: upload, 250..<600).partByteCount == 600)
    }

    @Test
    func `a wrong byte in a part is detected at the chunk's end, and the parts can be sent again`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        var wrong = upload.content
        wrong[10] ^= 1
        try await node.put(upload.put(0, upTo: 300), of: upload, ScriptedBody(wrong[..<300]))
        try await node.putPart(0, of: upload, 300..<600)
        await #expect(throws: EngineError(.chunkHashMismatch)) {
            try await node.put(0, of: upload, from: 600)
        }
        #expect(try await node.status(of: upload).partialChunks == [])
        #expect(try await node.putPart(0, of: upload, 0..<500).partByteCount == 500)
        #expect(try await node.put(0, of: upload, from: 500).isCreated)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    private func other(_ upload: Upload, seed: UInt64) -> Upload {
        Upload(
            id: upload.id, owner: upload.owner, content: sampleBytes(1000, seed: seed),
            chunkSize: 1000)
    }

    @Test(arguments: [false, true])
    func `parts of a rival lie beside acknowledged bytes until the rival is complete`(
        restarting: Bool
    ) async throws {
        var node = try await fixture.start()
        let old = try await node.begin(sampleBytes(1000))
        let new = other(old, seed: 2)
        try await node.putPart(0, of: old, 0..<600)
        for part in [0..<200, 200..<700] {
            let count = Int64(part.upperBound)
            #expect(try await node.putPart(0, of: new, part).partByteCount == count)
            if restarting { node = try await node.restart() }
            #expect(try await node.offset(of: old) == 600)
            // The part is repeated, as after a lost answer.
            #expect(try await node.putPart(0, of: new, part).partByteCount == count)
        }
        #expect(try await node.putPart(0, of: old, 600..<800).partByteCount == 800)
        #expect(try await node.put(0, of: new, from: 700).isCreated)
        #expect(try await node.content(of: try await node.finish(new)) == new.content)
    }

    @Test func `a part of another body does not overwrite the bytes of an append`() async throws {
        let node = try await fixture.start()
        let old = try await node.begin(sampleBytes(1000))
        let new = other(old, seed: 2)
        _ = try await node.append(old.content.prefix(300), to: old, at: 0)
        #expect(try await node.putPart(0, of: new, 0..<600).partByteCount == 600)
        #expect(try await node.offset(of: old) == 300)
        _ = try await node.append(old.content.dropFirst(300), to: old, at: 300)
        #expect(try await node.content(of: try await node.finish(old)) == old.content)
    }

    @Test func `parts of a third body are refused, and its complete chunk counts`() async throws {
        let node = try await fixture.start()
        let old = try await node.begin(sampleBytes(1000))
        let third = other(old, seed: 3)
        try await node.putPart(0, of: old, 0..<600)
        try await node.putPart(0, of: other(old, seed: 2), 0..<600)
        for count in [300, 700] {
            await #expect(throws: EngineError(.rangeMismatch)) {
                try await node.putPart(0, of: third, 0..<count)
            }
        }
        #expect(try await node.status(of: old).partialChunks.map(\.receivedBytes) == [600])
        #expect(try await node.put(0, of: third).isCreated)
        #expect(try await node.content(of: try await node.finish(third)) == third.content)
    }

    @Test func `a body that goes on after its part is refused`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        let body = ScriptedBody(upload.content[..<301], announcing: nil)
        await #expect(throws: EngineError(.lengthMismatch)) {
            try await node.put(upload.put(0, upTo: 300), of: upload, body)
        }
    }
}
