import KedgeEngine
import KedgeModel
import KedgeTesting
import Logging
import Testing

/// The scrub's load on the disk and on the page cache, and its warning when it is late.
@Suite(.timeLimit(.minutes(1))) struct ScrubLoadTests {
    /// Scrubs the blob that is due next, and returns how that used the page cache.
    private func scrub(_ node: Node) async throws -> [TestDisk.CacheUse] {
        let disk = node.fixture.disk
        let earlierCount = disk.cacheUses.count
        #expect(try await node.engine.scrubNext())
        return Array(disk.cacheUses.dropFirst(earlierCount))
    }

    /// Reads that get their bytes from the disk and leave none of them in the page cache.
    private func uncachedReads(of ranges: [Range<Int64>]) -> [TestDisk.CacheUse] {
        var uses: [TestDisk.CacheUse] = []
        for range in ranges {
            let bytes = ByteRange(start: range.lowerBound, end: range.upperBound)
            uses += [.drop(bytes), .read(bytes), .drop(bytes)]
        }
        return uses
    }

    private func warnings(of node: Node) -> [CapturedLog.Line] {
        node.fixture.log.lines.filter { $0.metadata["lag.seconds"] != nil }
    }

    @Test func `a scrub drops all bytes that it reads from the page cache`() async throws {
        let fixture = try EngineEnvironment()
        let node = try await fixture.start()
        _ = try await node.file(sampleBytes(2500))
        let uses = try await scrub(node)
        #expect(uses == uncachedReads(of: [0..<1000, 1000..<2000, 2000..<2500]))
    }

    /// The scrub reads at most a quarter of a second's worth of bytes at once.
    @Test func `a scrub reads at an eighth of its rate while a transfer is under way`()
        async throws
    {
        let fixture = try EngineEnvironment {
            $0.chunkSizes = 1...65536
            $0.scrubBytesPerSecond = 1 << 20
        }
        let first = try await fixture.start()
        for seed: UInt64 in [1, 2] {
            let upload = try await first.begin(sampleBytes(65536, seed: seed), chunkSize: 65536)
            try await first.putAll(of: upload)
            _ = try await first.finish(upload)
        }
        // The uploads count as transfers for two more seconds, but not in another process.
        let node = try await first.restart()
        #expect(!node.engine.isTransferring)
        let usesAlone = try await scrub(node)
        #expect(usesAlone == uncachedReads(of: [0..<65536]))

        let other = try await node.begin(sampleBytes(10))
        let body = ScriptedBody(sampleBytes(1), announcing: 10, ending: .hangs)
        let sending = Task { _ = try await node.put(other.put(0), of: other, body) }
        await body.watch.isHanging.wait()
        #expect(node.engine.isTransferring)
        let start = ContinuousClock.now
        let usesBeside = try await scrub(node)
        // 64 KiB at 128 KiB a second; a sixteenth of a second at the full rate.
        #expect(start.duration(to: .now) > .milliseconds(400))
        #expect(usesBeside == uncachedReads(of: [0..<32768, 32768..<65536]))
        sending.cancel()
        _ = await sending.result
    }

    @Test func `a scrub that is late for a new file logs one warning until the file is read`()
        async throws
    {
        let fixture = try EngineEnvironment()
        let node = try await fixture.start()
        _ = try await node.file(sampleBytes(2500))
        fixture.clock.advance(by: node.engine.configuration.scrubNewFilesWithin)
        try await node.engine.tendScrub()
        #expect(warnings(of: node).isEmpty)

        fixture.clock.advance(by: .seconds(5))
        try await node.engine.tendScrub()
        let logged = warnings(of: node)
        #expect(logged.map(\.level) == [.warning])
        #expect(logged.first?.metadata["files"] == "1")
        #expect(logged.first?.metadata["lag.seconds"] == "3605")
        #expect(logged.first?.metadata["target.seconds"] == "3600")

        try await node.scrubAll()
        #expect(warnings(of: node).count == 1)
    }
}
