import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// Chunks to which native requests and appends bring bytes that may differ: no announced offset
/// goes back, and no byte counts that no client sent.
@Suite(.timeLimit(.minutes(1))) struct SharedChunkTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    private func other(_ bytes: some Collection<UInt8>) -> [UInt8] { bytes.map { ~$0 } }

    @Test func `an append that ends inside a committed chunk must match its bytes`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(1, of: upload)
        let wrong = upload.content.prefix(1200) + other(upload.content[1200..<1500])
        await #expect(throws: EngineError(.chunkConflict)) {
            try await node.append(wrong, to: upload, at: 0)
        }
        // The bytes before the chunk are durable, and so is the chunk.
        #expect(try await node.offset(of: upload) == 2000)
        let second = try await node.begin(sampleBytes(2500))
        try await node.put(1, of: second)
        #expect(try await node.append(second.content.prefix(1500), to: second, at: 0) == 2000)
    }

    @Test func `an append with a checksum that ends in other bytes does not count`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(1, of: upload)
        let before = try await node.status(of: upload)
        let wrong = upload.content.prefix(1200) + other(upload.content[1200..<1500])
        await #expect(throws: EngineError(.chunkConflict)) {
            try await node.append(
                wrong, to: upload, at: 0, checksum: SHA256Hasher.digest(of: Array(wrong)))
        }
        #expect(try await node.status(of: upload) == before)
    }

    @Test(arguments: [false, true])
    func `an append that ends in other bytes than a partial sets the partial aside`(
        afterRestart: Bool
    ) async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        await node.breakOff(1, of: upload, after: 600)
        let wrong = upload.content.prefix(1000) + other(upload.content[1000..<1300])
        let error = await #expect(throws: EngineError.self) {
            try await node.append(wrong, to: upload, at: 0)
        }
        #expect(error?.expectedOffset == 1000)
        #expect(try await node.offset(of: upload) == 1000)
        if afterRestart { node = try await node.restart() }
        #expect(try await node.offset(of: upload) == 1000)
        #expect(try await node.status(of: upload).partialChunks.map(\.receivedBytes) == [600])
        // The append goes on at its offset, and the chunk where its own client left it.
        #expect(try await node.append(wrong[1000..<1200], to: upload, at: 1000) == 1200)
        #expect(try await node.put(1, of: upload, from: 600).isCreated)
        #expect(try await node.offset(of: upload) == 2000)
        _ = try await node.append(upload.content.dropFirst(2000), to: upload, at: 2000)
        let content = try await node.content(of: try await node.finish(upload))
        let expected = Array(wrong.prefix(1000)) + Array(upload.content.dropFirst(1000))
        #expect(content == expected)
    }

    @Test func `an append with a checksum also sets a partial with other bytes aside`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        let other = Upload(
            id: upload.id, owner: upload.owner, content: sampleBytes(2500, seed: 2),
            chunkSize: 1000)
        await node.breakOff(1, of: other, after: 600)
        let error = await #expect(throws: EngineError.self) {
            try await node.append(upload.content, to: upload, at: 0, checksum: upload.digest)
        }
        #expect(error?.expectedOffset == 0)
        #expect(try await node.status(of: upload).partialChunks.map(\.receivedBytes) == [600])
        let end = try await node.append(upload.content, to: upload, at: 0, checksum: upload.digest)
        #expect(end == 2500)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    /// Three bodies for one chunk, of which one is an append. The append first gets the offset at
    /// which the first of the others ends.
    @Test(arguments: [false, true])
    func `an append that meets two other bodies succeeds with its third request`(
        withChecksum: Bool
    ) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        for (seed, count) in [(2 as UInt64, 600), (3, 500)] {
            let other = Upload(
                id: upload.id, owner: upload.owner, content: sampleBytes(2500, seed: seed),
                chunkSize: 1000)
            await node.breakOff(1, of: other, after: count)
        }
        var exchanges = 0
        var offset = 0
        while offset < 2500, exchanges < 10 {
            exchanges += 1
            let (start, rest) = (offset, Array(upload.content.dropFirst(offset)))
            let checksum = withChecksum ? SHA256Hasher.digest(of: rest) : nil
            do {
                offset = Int(
                    try await node.append(rest, to: upload, at: start, checksum: checksum))
            } catch let error as EngineError {
                #expect(error.code == .offsetMismatch)
                offset = Int(try #require(error.expectedOffset))
                #expect(offset == (exchanges == 1 ? 1600 : 1000))
            }
        }
        #expect(exchanges == 3)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    /// The last chunk is short, and no client has declared its digest.
    @Test func `an append of unknown size that meets two other bodies is refused`()
        async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1800), sized: false)
        for (seed, count) in [(2 as UInt64, 600), (3, 500)] {
            let other = Upload(
                id: upload.id, owner: upload.owner, content: sampleBytes(2000, seed: seed),
                chunkSize: 1000, hasSize: false)
            await node.breakOff(1, of: other, after: count)
        }
        await #expect(throws: EngineError(.chunkConflict)) {
            try await node.append(upload.content, to: upload, at: 0, completes: true)
        }
        #expect(try await node.status(of: upload).state == .open)
    }

    @Test func `a damaged append discards nothing`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        await node.breakOff(1, of: upload, after: 600)
        let before = try await node.status(of: upload)
        var damaged = upload.content
        damaged[1100] ^= 1
        await #expect(throws: EngineError(.chunkHashMismatch)) {
            try await node.append(damaged, to: upload, at: 0, checksum: upload.digest)
        }
        #expect(try await node.status(of: upload) == before)
    }

    @Test(arguments: [0, 300])
    func `a native chunk with a wrong digest invalidates no bytes of an append`(
        start: Int
    ) async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        _ = try await node.append(upload.content.prefix(300), to: upload, at: 0)
        let body = ScriptedBody(upload.chunk(0).dropFirst(start))
        await #expect(throws: EngineError(.chunkHashMismatch)) {
            try await node.put(
                upload.put(0, from: start, digest: SHA256Hasher.digest(of: [1])), of: upload, body)
        }
        #expect(try await node.offset(of: upload) == 300)
        node = try await node.restart()
        #expect(try await node.offset(of: upload) == 300)
        _ = try await node.append(upload.content.dropFirst(300), to: upload, at: 300)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `an interrupted native chunk keeps the offset of an append`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        _ = try await node.append(upload.content.prefix(300), to: upload, at: 0)
        await node.breakOff(0, of: upload, from: 300, after: 200)
        #expect(try await node.offset(of: upload) == 500)
        let other = SHA256Hasher.digest(of: [1])
        await #expect(throws: EngineError(.chunkHashMismatch)) {
            try await node.put(
                upload.put(0, digest: other), of: upload, ScriptedBody(upload.chunk(0)))
        }
        #expect(try await node.offset(of: upload) == 500)
    }

    @Test func `a complete native chunk with the right digest replaces other bytes`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        _ = try await node.append(other(upload.content.prefix(300)), to: upload, at: 0)
        #expect(try await node.put(0, of: upload).isCreated)
        for index in 1...2 { try await node.put(index, of: upload) }
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `an append cannot complete a native chunk with other bytes`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        // The first bytes of the chunk were damaged on their way.
        let damaged = ScriptedBody(
            other(upload.content.prefix(300)), announcing: 1000, ending: .breaksOff)
        _ = try? await node.put(upload.put(0), of: upload, damaged)
        #expect(try await node.offset(of: upload) == 300)
        let error = await #expect(throws: EngineError.self) {
            try await node.append(upload.content.dropFirst(300), to: upload, at: 300)
        }
        #expect(error?.expectedOffset == 0)
        _ = try await node.append(upload.content, to: upload, at: 0)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `a damaged append declares no size`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500), sized: false)
        let append = { @Sendable (size: Int, checksum: SHA256Digest) in
            try await node.engine.append(
                AppendPut(offset: 0, checksum: .sha256(checksum), declaredSize: Int64(size)),
                to: upload.id, owner: upload.owner,
                body: ScriptedBody(upload.content.prefix(size)))
        }
        await #expect(throws: EngineError(.chunkHashMismatch)) {
            try await append(1200, upload.digest)
        }
        #expect(try await node.status(of: upload).fileSize == nil)
        #expect(try await append(2500, upload.digest) == 2500)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `an append with a checksum is refused beyond its own limit`() async throws {
        let fixture = try EngineEnvironment { $0.maxCheckedByteCount = 1500 }
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        for announced in [true, false] {
            let body = ScriptedBody(
                upload.content.prefix(1501), announcing: announced ? 1501 : nil)
            let put = AppendPut(
                offset: 0,
                checksum: .sha256(SHA256Hasher.digest(of: Array(upload.content.prefix(1501)))))
            await #expect(throws: EngineError(.fileTooLarge)) {
                try await node.engine.append(put, to: upload.id, owner: upload.owner, body: body)
            }
        }
        #expect(try await node.offset(of: upload) == 0)
        let piece = upload.content.prefix(1500)
        let end = try await node.append(
            piece, to: upload, at: 0, checksum: SHA256Hasher.digest(of: Array(piece)))
        #expect(end == 1500)
    }

    @Test func `a chunk beyond a size that is declared while it comes is refused`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500), sized: false)
        let slow = ThreadGate()
        fixture.disk.apply { call, count in
            if call == .write, count == 1 { slow.wait() }
            return nil
        }
        let put = Task { try await node.put(1, of: upload) }
        await slow.hasArrived.wait()
        let declaring = AppendPut(offset: 0, declaredSize: 1300)
        _ = try await node.engine.append(
            declaring, to: upload.id, owner: upload.owner, body: ScriptedBody([]))
        slow.open()
        await #expect(throws: EngineError(.chunkOutOfBounds)) { try await put.value }
        #expect(try await node.status(of: upload).fileSize == 1300)
    }
}
