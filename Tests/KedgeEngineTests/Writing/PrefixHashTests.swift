import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// The whole-file hash is done when finalize asks for it.
@Suite(.timeLimit(.minutes(1))) struct PrefixHashTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    /// R22, R64: this holds for any order, interruptions and restarts.
    @Test(arguments: 1...12 as ClosedRange<UInt64>)
    func `the digest is that of the file whatever the order of its chunks`(
        seed: UInt64
    ) async throws {
        var generator = SplitMix64(seed: seed)
        var node = try await fixture.start()
        let content = sampleBytes(Int.random(in: 0...8000, using: &generator), seed: seed)
        let chunkSize = [100, 256, 999, 4000].randomElement(using: &generator) ?? 1000
        let upload = try await node.begin(content, chunkSize: chunkSize)
        for index in (0..<upload.chunkCount).shuffled(using: &generator) {
            let length = upload.chunk(index).count
            switch Int.random(in: 0..<5, using: &generator) {
            case 0: node = try await node.restart()
            case 1 where length > 1:
                let cut = Int.random(in: 1..<length, using: &generator)
                await node.breakOff(index, of: upload, after: cut)
                try await node.put(index, of: upload, from: cut)
                continue
            default: break
            }
            try await node.put(index, of: upload)
        }
        let file = try await node.finish(upload)
        #expect(file.digest == upload.digest)
        #expect(try await node.content(of: file) == content)
    }

    @Test func `finalize reads nothing after chunks that came in order`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(5500))
        try await node.putAll(of: upload)
        let file = try await node.finish(upload)
        #expect(file.digest == upload.digest)
        #expect(fixture.disk.counts.readBytes == 0)
    }

    @Test func `finalize reads nothing after one append`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(5500))
        _ = try await node.append(upload.content, to: upload, at: 0)
        let file = try await node.finish(upload)
        #expect(file.digest == upload.digest)
        #expect(fixture.disk.counts.readBytes == 0)
    }

    /// Chunks 1 to 4 come first; each is read back once, when chunk 0 has closed the gap.
    @Test func `chunks that came out of order are read back once`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(5000))
        for index in [4, 2, 1, 3] { try await node.put(index, of: upload) }
        #expect(fixture.disk.counts.readBytes == 0)
        try await node.put(0, of: upload)
        _ = try await node.finish(upload)
        #expect(fixture.disk.counts.readBytes == 4000)
    }

    @Test func `a restart goes on from the saved state`() async throws {
        var node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(5500))
        for index in 0..<5 { try await node.put(index, of: upload) }
        node = try await node.restart()
        try await node.put(5, of: upload)
        let file = try await node.finish(upload)
        #expect(file.digest == upload.digest)
        // The state is saved with the next chunk's row, so it is one chunk behind.
        #expect(fixture.disk.counts.readBytes <= 1500)
    }

    @Test func `finalize answers pending when the hash takes longer than the timeout`() async throws
    {
        let fixture = try EngineEnvironment { $0.finalizeTimeout = .zero }
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        let gate = ThreadGate()
        fixture.disk.apply { call, _ in
            if call == .read { gate.wait() }
            return nil
        }
        for index in [1, 2, 0] { try await node.put(index, of: upload) }
        await gate.hasArrived.wait()
        let outcome = try await node.engine.finalize(upload.id, owner: upload.owner)
        guard case .pending(let verified) = outcome else {
            Issue.record("it was not pending")
            return
        }
        #expect(verified == 1000)
        #expect(try await node.status(of: upload).state == .open)
        gate.open()
        #expect(try await node.finish(upload).digest == upload.digest)
    }

    @Test func `an acknowledgement waits while the hash is too far behind`() async throws {
        let fixture = try EngineEnvironment {
            $0.maxHashLag = 1500
            $0.finalizeTimeout = .seconds(30)
        }
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(4000))
        for index in [3, 2, 1] { try await node.put(index, of: upload) }
        let reads = Shared(0)
        fixture.disk.apply { call, _ in
            if call == .read { _ = reads.increment() }
            return nil
        }
        try await node.put(0, of: upload)
        // 4000 bytes are committed without a gap, so at least 2500 of them are hashed by now.
        #expect(reads.value >= 6)
    }

    @Test func `a failed read fails the finalize, and the next one reads again`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(2500))
        for index in [1, 2] { try await node.put(index, of: upload) }
        fixture.disk.fail(.read, times: .max)
        try await node.put(0, of: upload)
        await #expect(throws: EngineError(.internalError)) { try await node.finish(upload) }
        fixture.disk.heal()
        #expect(try await node.finish(upload).digest == upload.digest)
    }
}
