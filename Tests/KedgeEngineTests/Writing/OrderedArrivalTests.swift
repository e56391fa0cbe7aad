import Glibc
import KedgeEngine
import KedgeFiles
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// The hash of a file whose chunks arrive side by side and in order, faster than they are hashed.
@Suite(.timeLimit(.minutes(1))) struct OrderedArrivalTests {
    /// A pool on which each piece of work takes some time longer: 256 KiB in 5 ms are 50 MiB/s.
    private static func slowPool() -> BlockingPool {
        let pool = BlockingPool(threadCount: 4)
        return BlockingPool { job in
            _ = pool.start {
                usleep(5000)
                job()
            }
        }
    }

    private let fixture: EngineEnvironment

    init() throws {
        fixture = try EngineEnvironment(pool: Self.slowPool()) {
            $0.chunkSizes = 1...(1 << 20)
            $0.maxFileSize = 64 << 20
            $0.bufferCapacity = 256 << 10
            $0.hashStepLimits = FileHashStep.Limits()
        }
    }

    /// Sends the chunks in this order, several at a time.
    private func send(
        _ indexes: [Int], of upload: Upload, over connectionCount: Int, to node: Node
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, index) in indexes.enumerated() {
                if number >= connectionCount { try await group.next() }
                group.addTask { try await node.put(index, of: upload) }
            }
            try await group.waitForAll()
        }
    }

    @Test(arguments: [1, 4, 8])
    func `chunks that arrive in order are hashed once, however slow the hash is`(
        connectionCount: Int
    ) async throws {
        let node = try await fixture.start(timer: ContinuousClock()) {
            // Beside other tests, the hash may be slower than the rate at which a wait ends.
            $0.hashStepLimits = FileHashStep.Limits(timeout: .seconds(50), minBytesPerSecond: 1)
        }
        let upload = try await node.begin(sampleBytes(16 << 20), chunkSize: 1 << 20)
        try await send(Array(0..<16), of: upload, over: connectionCount, to: node)
        let file = try await node.finish(upload)
        #expect(file.digest == upload.digest)
        #expect(node.engine.readBackByteCount <= (16 << 20) / 100)
    }

    @Test func `chunks after one that was read back are hashed on receipt again`() async throws {
        let node = try await fixture.start(timer: ContinuousClock())
        let upload = try await node.begin(sampleBytes(16 << 20), chunkSize: 1 << 20)
        // The second chunk comes before the first, so it is read back.
        try await send([1, 0] + Array(2..<16), of: upload, over: 1, to: node)
        let file = try await node.finish(upload)
        #expect(file.digest == upload.digest)
        #expect(node.engine.readBackByteCount <= 2 << 20)
    }

    @Test func `no chunk waits for one that stalls`() async throws {
        let node = try await fixture.start(timer: ContinuousClock())
        let upload = try await node.begin(sampleBytes(4 << 20), chunkSize: 1 << 20)
        let body = ScriptedBody(
            upload.chunk(0).prefix(256 << 10), announcing: 1 << 20, ending: .hangs)
        let stalled = Task { try await node.put(upload.put(0), of: upload, body) }
        await body.watch.isHanging.wait()
        let began = ContinuousClock.now
        try await send([1, 2, 3], of: upload, over: 3, to: node)
        #expect(ContinuousClock.now - began < .seconds(5))
        stalled.cancel()
        await #expect(throws: EngineError.self) { try await stalled.value }
        try await node.put(0, of: upload, from: 256 << 10)
        #expect(try await node.finish(upload).digest == upload.digest)
    }
}
