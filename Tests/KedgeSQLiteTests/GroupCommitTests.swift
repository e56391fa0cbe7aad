import GRDB
import KedgeEngine
import KedgeLocks
import KedgeModel
import KedgeSQLite
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct GroupCommitTests {
    /// Counts commits, and makes them fail as planned.
    private final class Commits: Sendable {
        private let count = Mutex(0)
        private let failure = Mutex<ResultCode?>(nil)

        var number: Int { count.withLock { $0 } }

        func fail(with code: ResultCode?) { failure.withLock { $0 = code } }

        func commit(_ db: Database) throws {
            count.withLock { $0 += 1 }
            if let code = failure.withLock({ $0 }) { throw DatabaseError(resultCode: code) }
            try db.commit()
        }
    }

    private func commitChunks(
        _ indexes: Range<Int>, of record: SessionRecord, in store: SQLiteStore
    ) async -> [MetadataError] {
        await withTaskGroup(of: MetadataError?.self) { group in
            for index in indexes {
                group.addTask {
                    do throws(MetadataError) {
                        try await commit(index, of: record, in: store)
                        return nil
                    } catch {
                        return error
                    }
                }
            }
            return await group.reduce(into: []) { if let error = $1 { $0.append(error) } }
        }
    }

    private func commit(
        _ index: Int, of record: SessionRecord, in store: SQLiteStore
    ) async throws(MetadataError) {
        let chunk = CommittedChunk(
            index: index, byteCount: record.chunkSize, digest: Sample.digest("\(index)"))
        do {
            _ = try await store.commit([chunk], touching: Sample.touch(record))
        } catch let error as MetadataError {
            throw error
        } catch {
            throw .failed("a store throws nothing else: \(error)")
        }
    }

    private func makeRecord(in store: SQLiteStore) async throws -> SessionRecord {
        let record = Sample.session(fileSize: 1000 * Sample.chunkSize)
        _ = try await store.createSession(record, idempotencyKey: nil, adopting: nil)
        return record
    }

    @Test func `operations that wait together share a commit`() async throws {
        let fixture = try SQLiteEnvironment()
        let commits = Commits()
        let store = fixture.store(over: try fixture.openQueue()) { try commits.commit($0) }
        let record = try await makeRecord(in: store)
        let before = commits.number
        #expect(await commitChunks(0..<500, of: record, in: store) == [])
        #expect(commits.number - before < 250)
        let stored = try await store.progress(of: record.id, owner: record.owner)
        #expect(stored?.chunks.count == 500)
        try await store.close()
    }

    @Test func `a failed commit fails all its operations, and the next commits work`() async throws
    {
        let fixture = try SQLiteEnvironment()
        let commits = Commits()
        let store = fixture.store(over: try fixture.openQueue()) { try commits.commit($0) }
        let record = try await makeRecord(in: store)
        commits.fail(with: .SQLITE_FULL)
        let errors = await commitChunks(0..<50, of: record, in: store)
        #expect(errors.count == 50)
        #expect(errors.allSatisfy { if case .full = $0 { true } else { false } })
        commits.fail(with: .SQLITE_BUSY)
        let busy = await commitChunks(0..<1, of: record, in: store)
        #expect(busy.allSatisfy { if case .unavailable = $0 { true } else { false } })
        commits.fail(with: nil)
        let stored = try await store.progress(of: record.id, owner: record.owner)
        #expect(stored?.chunks == [])
        #expect(await commitChunks(0..<50, of: record, in: store) == [])
        #expect(fixture.fatal == [])
        try await store.close()
    }

    @Test(arguments: [
        ResultCode.SQLITE_IOERR_FSYNC, .SQLITE_IOERR_DIR_FSYNC, .SQLITE_IOERR_WRITE,
        .SQLITE_CORRUPT,
    ])
    func `after a failed sync or damage the handler is called once and the store refuses all`(
        _ code: ResultCode
    ) async throws {
        let fixture = try SQLiteEnvironment()
        let commits = Commits()
        let store = fixture.store(over: try fixture.openQueue()) { try commits.commit($0) }
        let record = try await makeRecord(in: store)
        commits.fail(with: code)
        #expect(await commitChunks(0..<20, of: record, in: store).count == 20)
        #expect(fixture.fatal.count == 1)
        commits.fail(with: nil)
        #expect(await commitChunks(0..<5, of: record, in: store).count == 5)
        await #expect(throws: MetadataError.self) {
            try await store.progress(of: record.id, owner: record.owner)
        }
        #expect(fixture.fatal.count == 1)
    }

    @Test func `a disk that fills up loses no acknowledged commit`() async throws {
        let fixture = try SQLiteEnvironment()
        let queue = try fixture.openQueue()
        let store = fixture.store(over: queue)
        let record = try await makeRecord(in: store)
        try await queue.writeWithoutTransaction { db in
            let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            try db.execute(sql: "PRAGMA max_page_count = \(pages + 4)")
        }
        var answered: Set<Int> = []
        for start in stride(from: 0, to: 1000, by: 50) {
            let errors = await commitChunks(start..<start + 50, of: record, in: store)
            #expect(errors.allSatisfy { if case .full = $0 { true } else { false } })
            // The operations may be in several commits, so only a round without errors counts as
            // answered.
            if errors.isEmpty { answered.formUnion(start..<start + 50) }
        }
        #expect(answered.count < 1000)
        #expect(!answered.isEmpty)
        try await queue.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA max_page_count = 100000")
        }
        let stored = try await store.progress(of: record.id, owner: record.owner)
        #expect(answered.isSubset(of: Set(stored?.chunks.map(\.index) ?? [])))
        _ = await commitChunks(0..<1000, of: record, in: store)
        let healed = try await store.progress(of: record.id, owner: record.owner)
        #expect(healed?.chunks.count == 1000)
        #expect(fixture.fatal == [])
        try await store.close()
    }

    @Test func `a closed store refuses operations`() async throws {
        let fixture = try SQLiteEnvironment()
        let store = try await fixture.open()
        try await store.close()
        await #expect(throws: MetadataError.unavailable("the database is closed")) {
            try await store.checkHealth()
        }
    }
}
