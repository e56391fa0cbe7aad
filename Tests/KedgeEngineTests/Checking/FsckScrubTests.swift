import KedgeDisk
import KedgeEngine
import KedgeFiles
import KedgeSQLite
import Testing

/// The rate of a scrub, and its cancellation.
@Suite(.timeLimit(.minutes(1))) struct FsckScrubTests {
    @Test(arguments: [1, 700, 1_000_000] as [Int64])
    func `the pacer lets bytes pass at exactly its rate`(rate: Int64) {
        var pacer = RatePacer(bytesPerSecond: rate)
        var now = Duration.zero
        for _ in 0..<10 { now += pacer.pause(after: rate * 2, at: now) }
        #expect(abs(now / .seconds(1) - 20) < 0.001)
    }

    @Test func `a reader slower than the rate saves up no allowance`() {
        var pacer = RatePacer(bytesPerSecond: 1000)
        #expect(pacer.pause(after: 1000, at: .seconds(0)) == .seconds(1))
        #expect(pacer.pause(after: 1000, at: .seconds(100)) == .seconds(1))
        #expect(pacer.pause(after: 500, at: .seconds(101)) == .milliseconds(500))
    }

    @Test func `a scrub that is cancelled stops while it waits`() async throws {
        let fixture = try EngineEnvironment()
        let node = try await fixture.start()
        _ = try await node.file(sampleBytes(9000))
        try await node.kill()
        let pool = BlockingPool(threadCount: 2)
        let inspection = try await DiskInspection.open(fixture.dataPath, pool: pool)
        let copy = try await DatabaseCopy.make(of: fixture.databasePath, pool: pool)
        let tally = CheckTally { Issue.record("nothing is wrong: \($0)") }
        let check = StoreCheck(
            rows: copy.store, bytes: inspection,
            scrubber: ByteScrubber(pool: pool, bytesPerSecond: 1), tally: tally)
        let task = Task { try await check.run() }
        while tally.summary.hashedByteCount == 0 { await Task.yield() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(tally.summary.hashedByteCount < 9000)
        #expect(tally.summary.plannedByteCount == 9000)
        await copy.close()
        await inspection.close()
        #expect(try fixture.directory.openDescriptorCount(below: "blobs") == 0)
    }
}
