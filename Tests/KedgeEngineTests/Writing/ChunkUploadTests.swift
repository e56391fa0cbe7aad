import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct ChunkUploadTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    /// R55, R64, R127.
    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `chunks in any order make the file`(seed: UInt64) async throws {
        var generator = SplitMix64(seed: seed)
        let content = sampleBytes(Int.random(in: 1...9000, using: &generator), seed: seed)
        let node = try await fixture.start()
        let upload = try await node.begin(content)
        var sent: Set<Int> = []
        for index in (0..<upload.chunkCount).shuffled(using: &generator) {
            let outcome = try await node.put(index, of: upload)
            sent.insert(index)
            #expect(outcome.isCreated)
            #expect(outcome.receipt.receivedChunkCount == sent.count)
            #expect(try await node.status(of: upload).receivedChunks == sent.sorted())
        }
        let file = try await node.finish(upload)
        #expect(file.digest == upload.digest)
        #expect(try await node.content(of: file) == content)
    }

    @Test(arguments: [1, 999, 1000, 1001, 2000])
    func `chunks sent at once make the file, whatever the length of the last one`(byteCount: Int)
        async throws
    {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(byteCount), chunkSize: 100)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<upload.chunkCount {
                group.addTask { try await node.put(index, of: upload) }
            }
            try await group.waitForAll()
        }
        let file = try await node.finish(upload)
        #expect(try await node.content(of: file) == upload.content)
    }

    @Test func `a receipt has the chunk's digest and the totals of its session`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        await node.breakOff(0, of: upload, after: 300)
        let receipt = try await node.put(2, of: upload).receipt
        #expect(receipt.index == 2)
        #expect(receipt.sha256 == SHA256Hasher.digest(of: upload.chunk(2)))
        #expect(receipt.receivedBytes == 800)
        #expect(receipt.receivedChunkCount == 1)
        #expect(receipt.totalChunks == 3)
    }

    /// R12, R59: acknowledged chunks outlive the process.
    @Test func `received chunks survive a restart`() async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(5500))
        for index in [5, 0, 2, 1] { try await node.put(index, of: upload) }
        node = try await node.restart()
        let status = try await node.status(of: upload)
        #expect(status.receivedChunks == [0, 1, 2, 5])
        #expect(status.receivedRanges == [[0, 2], [5, 5]])
        #expect(status.receivedBytes == 3500)
        for index in [3, 4] { try await node.put(index, of: upload) }
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    /// Bytes reach stable storage before the row, and the row comes before the answer.
    @Test func `a chunk is written, then synced, then committed`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        let events = Shared<[String]>([])
        fixture.disk.apply { call, _ in
            events.update { $0.append("\(call)") }
            return nil
        }
        node.metadata.before { call in events.update { $0.append("\(call)") } }
        try await node.put(0, of: upload)
        let order = events.value.filter { ["write", "sync", "commit"].contains($0) }
        #expect(order == ["write", "write", "write", "write", "sync", "commit"])
    }

    /// R122.
    @Test(arguments: [false, true])
    func `a chunk sent again is already received, and its body is not read`(
        afterRestart: Bool
    ) async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.put(1, of: upload)
        if afterRestart { node = try await node.restart() }
        let before = try await node.status(of: upload)
        let body = ScriptedBody(upload.chunk(1), announcing: 1000)
        let outcome = try await node.put(upload.put(1), of: upload, body)
        #expect(!outcome.isCreated)
        #expect(outcome.receipt.receivedChunkCount == 1)
        #expect(body.watch.readerCount == 0)
        #expect(try await node.status(of: upload) == before)
    }

    /// R123: the first write wins.
    @Test(arguments: [false, true])
    func `a chunk sent again with other bytes is a conflict, and the first stays`(
        afterRestart: Bool
    ) async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        try await node.putAll(of: upload)
        if afterRestart { node = try await node.restart() }
        let other = sampleBytes(1000, seed: 2)
        let put = upload.put(1, digest: SHA256Hasher.digest(of: other))
        let body = ScriptedBody(other, announcing: 1000)
        let error = await #expect(throws: EngineError.self) {
            try await node.put(put, of: upload, body)
        }
        #expect(error?.code == .chunkConflict)
        #expect(error?.expectedDigest == SHA256Hasher.digest(of: upload.chunk(1)))
        #expect(error?.actualDigest == put.digest)
        #expect(body.watch.readerCount == 0)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `sessions do not touch each other`() async throws {
        let node = try await fixture.start()
        let first = try await node.begin(sampleBytes(1500, seed: 1))
        let second = try await node.begin(sampleBytes(1500, seed: 2))
        try await node.put(0, of: first)
        try await node.put(1, of: second)
        #expect(try await node.status(of: first).receivedChunks == [0])
        #expect(try await node.status(of: second).receivedChunks == [1])
        try await node.put(1, of: first)
        #expect(try await node.content(of: try await node.finish(first)) == first.content)
    }
}
