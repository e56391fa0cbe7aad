import GRDB
import KedgeEngine
import KedgeModel
import KedgeSQLite
import KedgeTesting
import Testing

/// Rows that a check of the stores reads from the database.
struct CheckedRowsTests {
    private let fixture: SQLiteEnvironment

    init() throws { fixture = try SQLiteEnvironment() }

    /// A session with two chunks and a partial of the third.
    private func session(in store: SQLiteStore) async throws -> SessionRecord {
        let record = Sample.session()
        _ = try await store.createSession(record, idempotencyKey: nil, adopting: nil)
        _ = try await store.commit(
            [Sample.chunk(0), Sample.chunk(1)], touching: Sample.touch(record))
        try await store.savePartial(Sample.partial(2), touching: Sample.touch(record))
        return record
    }

    private func file(_ content: String, in store: SQLiteStore) async throws -> FileRecord {
        let record = try await session(in: store)
        _ = try await store.commit([Sample.chunk(2)], touching: Sample.touch(record))
        _ = try await store.beginFinalize(
            of: record.id, digest: Sample.digest(content), fileID: .random())
        return try await store.completeFinalize(of: record.id, at: Sample.time(1))
    }

    @Test func `pages follow each other without a gap or a repetition`() async throws {
        let store = try await fixture.open()
        let sessions = [
            try await session(in: store), try await session(in: store),
            try await session(in: store),
        ].sorted { $0.id.text < $1.id.text }
        var found: [SessionID] = []
        while let next = try await store.sessionsWithBytes(after: found.last, limit: 1).first {
            found.append(next.id)
        }
        #expect(found == sessions.map(\.id))
        let id = sessions[1].id
        #expect(try await store.chunks(of: id, from: 0, limit: 1) == [Sample.chunk(0)])
        #expect(try await store.chunks(of: id, from: 1, limit: 9) == [Sample.chunk(1)])
        #expect(try await store.chunks(of: id, from: 2, limit: 9) == [])
        #expect(try await store.partials(of: id, from: 2, limit: 1) == [Sample.partial(2)])
        #expect(try await store.partials(of: id, from: 3, limit: 1) == [])
        try await store.close()
    }

    @Test func `files that are not deleted come by digest, also those that share a blob`()
        async throws
    {
        let store = try await fixture.open()
        var files: [FileRecord] = []
        for content in ["a", "b", "a", "c"] { files.append(try await file(content, in: store)) }
        let deleted = files.removeLast()
        try await store.deleteFile(deleted.id, owner: deleted.owner, at: Sample.time(2))
        var found: [FileRecord] = []
        while let next = try await store.liveFiles(after: found.last, limit: 1).first {
            found.append(next)
        }
        #expect(
            found
                == files.sorted {
                    ($0.digest.hex, $0.id.text) < ($1.digest.hex, $1.id.text)
                })
        #expect(try await store.isKnown(.blob(Sample.digest("a"))))
        #expect(try await store.isKnown(.blob(deleted.digest)), "the garbage knows it")
        try await store.forgetGarbageNow(.blob(deleted.digest))
        #expect(try await !store.isKnown(.blob(deleted.digest)))
        try await store.close()
    }

    @Test func `the bytes of a session, and of a blob with two files, are promised once`()
        async throws
    {
        let store = try await fixture.open()
        #expect(try await store.promisedByteCount() == 0)
        _ = try await file("a", in: store)
        _ = try await file("a", in: store)
        _ = try await session(in: store)
        #expect(try await store.promisedByteCount() == 250 + 200 + 30)
        try await store.close()
    }

    @Test func `a row with a broken reference is found`() async throws {
        let store = try await fixture.open()
        let record = try await session(in: store)
        #expect(try await store.databaseFaults() == [])
        try await store.close()
        try fixture.withQueue { queue in
            try queue.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA foreign_keys = OFF")
                try db.execute(
                    sql: "DELETE FROM session WHERE id = ?", arguments: [record.id.text])
            }
        }
        let damaged = try await fixture.open()
        let faults = try await damaged.databaseFaults()
        #expect(faults.map(\.kind) == [.referenceBroken, .referenceBroken])
        #expect(faults.map(\.id) == ["chunk", "partial_chunk"])
        try await damaged.close()
    }
}

extension SQLiteStore {
    /// Claims the garbage, then forgets one item of it.
    fileprivate func forgetGarbageNow(_ garbage: Garbage) async throws {
        _ = try await claimGarbage(now: Sample.time(9), leaseUntil: Sample.time(10), limit: 9)
        try await forgetGarbage(garbage, claimedUntil: Sample.time(10))
    }
}
