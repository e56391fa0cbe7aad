import GRDB
import KedgeClient
import KedgeModel
import Testing

/// The times at which the bytes of an unfinished chunk are recorded and synced.
struct CheckpointPaceTests {
    private static let begin = Timestamp(millisecondsSinceEpoch: 1_000_000)
    private var pace = CheckpointPace(limits: CheckpointLimits(), at: begin)

    private func step(_ mebibytes: Int64, after milliseconds: Int64) -> CheckpointPace.Step {
        let now = Timestamp(
            millisecondsSinceEpoch: Self.begin.millisecondsSinceEpoch + milliseconds)
        return pace.step(arrived: mebibytes << 20, written: mebibytes << 20, at: now)
    }

    @Test mutating func `an unfinished chunk is recorded after each mebibyte`() {
        #expect(pace.step(arrived: 1 << 20, written: 0, at: Self.begin) == .nothing)
        #expect(step(1, after: 10) == .note)
        pace.noted(1 << 20)
        #expect(step(1, after: 10) == .nothing)
        #expect(step(2, after: 10) == .note)
    }

    @Test mutating func `an unfinished chunk is synced after two seconds or sixteen mebibytes`() {
        #expect(step(1, after: 1999) == .note)
        #expect(step(1, after: 2000) == .sync)
        #expect(step(16, after: 10) == .sync)
        pace.synced(16 << 20, at: Self.begin)
        #expect(step(16, after: 5000) == .nothing)
        #expect(step(17, after: 5000) == .sync)
    }

    @Test func `bytes that are not written yet are synced in time as well`() {
        let now = Timestamp(
            millisecondsSinceEpoch: Self.begin.millisecondsSinceEpoch + 2000)
        #expect(pace.step(arrived: 1, written: 0, at: now) == .sync)
    }

    @Test func `a clock that is set back does not delay a sync`() {
        #expect(step(1, after: -1) == .sync)
    }

    @Test func `recording an unfinished chunk leaves the commits of records synced`() async throws {
        let fixture = try TransferEnvironment()
        let client = try await fixture.client()
        let id = try await client.enqueueDownload(
            .file(fixture.addFile([1])), to: fixture.path("out.bin"))
        guard case .acquired(let lease) = try await client.store.acquireLease(id, for: client.owner)
        else { return #expect(Bool(false), "the lease was not given") }
        let part = SavedHash(offsetBytes: 7, state: [1])
        try await client.store.notePartial(part, ofChunk: 0, of: lease)
        #expect(
            try await client.store.partials(of: id)
                == [DownloadPartial(index: 0, noted: part, synced: nil)])
        let level = try await client.store.reading("test") { database in
            try Int.fetchOne(database, sql: "PRAGMA synchronous")
        }
        #expect(level == 2)
        let other = Lease(id: id, direction: .download, token: "other")
        await #expect {
            try await client.store.notePartial(part, ofChunk: 0, of: other)
        } throws: { error in
            error.isLeaseLost
        }
    }
}
