import KedgeEngine
import KedgeFiles
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct SweepTests {
    private let fixture: EngineEnvironment

    init() throws {
        fixture = try EngineEnvironment {
            // No session expires here, however far the tests move the clock.
            $0.sessionLifetime = .seconds(1_000_000_000)
            $0.idleSessionLifetime = .seconds(10)
        }
    }

    private func blobExists(_ digest: SHA256Digest) throws -> Bool {
        let hex = digest.hex
        let path = "\(hex.prefix(2))/\(hex.dropFirst(2).prefix(2))/\(hex)"
        return try POSIXFileSystem().status(of: "\(fixture.dataPath)/blobs/\(path)") != nil
    }

    @Test func `a sweep leaves needed bytes alone`() async throws {
        let node = try await fixture.start()
        let file = try await node.file(sampleBytes(2500))
        let upload = try await node.begin(sampleBytes(1500))
        try await node.put(0, of: upload)
        for _ in 0..<3 { try await node.engine.sweep() }
        #expect(try await node.content(of: file) == sampleBytes(2500))
        try await node.put(1, of: upload)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    /// The rows list garbage, and the process died before it removed the bytes.
    @Test func `garbage of an earlier process is removed`() async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1500))
        try await node.put(0, of: upload)
        let file = try await node.file(sampleBytes(2500))
        try await node.metadata.cancelSession(upload.id, owner: upload.owner)
        try await node.metadata.deleteFile(file.id, owner: .tester, at: fixture.clock.now())
        node = try await node.restart()
        #expect(try await node.bytes.stagingKeys() == [StagingKey(upload.id)])
        #expect(try blobExists(file.digest))
        try await node.engine.sweep()
        #expect(try await node.bytes.stagingKeys() == [])
        #expect(try !blobExists(file.digest))
    }

    /// A node that claimed garbage and died holds it until its lease ends.
    @Test func `garbage that another node claimed is left until its lease is over`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1500))
        try await node.put(0, of: upload)
        try await node.metadata.cancelSession(upload.id, owner: upload.owner)
        let now = fixture.clock.now()
        let claimed = try await node.metadata.claimGarbage(
            now: now, leaseUntil: now.advanced(by: .seconds(60)), limit: 10)
        #expect(claimed == [.staging(StagingKey(upload.id))])
        try await node.engine.sweep()
        #expect(try await node.bytes.stagingKeys() == [StagingKey(upload.id)])
        fixture.clock.advance(by: .seconds(61))
        try await node.engine.sweep()
        #expect(try await node.bytes.stagingKeys() == [])
    }

    @Test func `a blob that is needed again is not removed`() async throws {
        let node = try await fixture.start()
        let first = try await node.file(sampleBytes(2500))
        // Another node deleted the file and has not removed its bytes yet.
        try await node.metadata.deleteFile(first.id, owner: .tester, at: fixture.clock.now())
        let second = try await node.file(sampleBytes(2500))
        try await node.engine.sweep()
        #expect(try await node.content(of: second) == sampleBytes(2500))
    }

    @Test func `a blob that is needed again after a sweep claimed it is not removed`()
        async throws
    {
        let node = try await fixture.start()
        let first = try await node.file(sampleBytes(2500))
        try await node.metadata.deleteFile(first.id, owner: .tester, at: fixture.clock.now())
        let upload = try await node.begin(sampleBytes(2500))
        try await node.putAll(of: upload)
        let count = Shared(0)
        node.metadata.before { call in
            guard call == .claimedGarbage, count.increment() == 1 else { return }
            _ = try await node.finish(upload)
        }
        try await node.engine.sweep()
        #expect(count.value > 0)
        try await node.engine.sweep()
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `a session that left memory goes on as before`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(3500))
        try await node.put(0, of: upload)
        await node.breakOff(1, of: upload, after: 300)
        #expect(try fixture.directory.openDescriptorCount(below: "staging") == 1)
        fixture.clock.advance(by: .seconds(20))
        try await node.engine.sweep()
        // An idle session keeps no descriptor.
        #expect(try fixture.directory.openDescriptorCount(below: "staging") == 0)
        let status = try await node.status(of: upload)
        #expect(status.receivedChunks == [0])
        #expect(status.partialChunks == [PartialChunk(index: 1, receivedBytes: 300)])
        try await node.put(1, of: upload, from: 300)
        try await node.put(3, of: upload)
        try await node.put(2, of: upload)
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test func `a session with a writer stays in memory however long it takes`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(1000))
        let body = ScriptedBody(upload.content.prefix(300), announcing: 1000, ending: .hangs)
        let old = Task { try await node.put(upload.put(0), of: upload, body) }
        await body.watch.isHanging.wait()
        fixture.clock.advance(by: .seconds(20))
        try await node.engine.sweep()
        // The next writer meets the hung one instead of writing beside it.
        #expect(try await node.put(0, of: upload, from: 300).isCreated)
        await #expect(throws: EngineError(.writerReplaced)) { try await old.value }
        #expect(try await node.content(of: try await node.finish(upload)) == upload.content)
    }

    @Test(arguments: 1...5 as ClosedRange<UInt64>)
    func `continuous sweeps do not disturb an upload`(seed: UInt64) async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(6000, seed: seed), chunkSize: 200)
        let isDone = Shared(false)
        let fixture = fixture
        let sweeper = Task {
            while !isDone.value {
                fixture.clock.advance(by: .seconds(11))
                try await node.engine.sweep()
            }
        }
        var generator = SplitMix64(seed: seed)
        let order = (0..<upload.chunkCount).shuffled(using: &generator)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<3 {
                group.addTask {
                    for index in order where index % 3 == lane {
                        await node.breakOff(index, of: upload, after: 100)
                        try await node.put(index, of: upload, from: 100)
                    }
                }
            }
            try await group.waitForAll()
        }
        let file = try await node.finish(upload)
        isDone.update { $0 = true }
        try await sweeper.value
        #expect(file.digest == upload.digest)
        #expect(try await node.content(of: file) == upload.content)
    }

    @Test func `a health check covers both stores`() async throws {
        let node = try await fixture.start()
        try await node.engine.checkHealth()
        fixture.disk.fail(.sync)
        fixture.timer.advance(by: .seconds(1))
        await #expect(throws: EngineError(.internalError)) { try await node.engine.checkHealth() }
        fixture.timer.advance(by: .seconds(1))
        try await node.engine.checkHealth()
        try await node.kill()
        fixture.timer.advance(by: .seconds(1))
        await #expect(throws: EngineError(.unavailable)) { try await node.engine.checkHealth() }
    }
}
