import Foundation
import GRDB
import KedgeEngine
import KedgeModel
import KedgeSQLite
import KedgeTesting
import Testing

struct SQLiteQuotaTests {
    @Test(.timeLimit(.minutes(1)), arguments: QuotaConformance.all)
    func `the SQLite store keeps each promise about quotas`(
        _ promise: QuotaConformance.Case
    ) async throws {
        let fixture = try SQLiteEnvironment()
        try await promise.run { try await fixture.open() }
    }

    /// The migration files in the order of their numbers.
    private static func migrations() throws -> [URL] {
        let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../migrations/sqlite").standardizedFileURL
        return try FileManager.default.contentsOfDirectory(
            at: directory, includingPropertiesForKeys: nil
        ).filter { $0.pathExtension == "sql" }
            .sorted { $0.lastPathComponent < $1.lastPathComponent }
    }

    private static func apply(_ files: some Sequence<URL>, to queue: DatabaseQueue) throws {
        for file in files {
            let sql = try String(contentsOf: file, encoding: .utf8)
            try queue.write { try $0.execute(sql: sql) }
        }
    }

    private static func sums(_ queue: DatabaseQueue) throws -> [String] {
        try queue.read { db in
            try String.fetchAll(
                db,
                sql: """
                    SELECT owner || ' ' || stored_bytes || ' ' || reserved_bytes || ' ' \
                    || open_sessions FROM owner ORDER BY owner
                    """)
        }
    }

    /// A session as a version without quotas inserts it.
    private static func session(
        _ number: Int, _ owner: String, _ state: String, size: String
    ) -> String {
        let id = String(repeating: "\(number)", count: 32)
        let isDone = state == "completed"
        return """
            INSERT INTO session (id, owner, staging_key, file_name, file_size, chunk_size,
                metadata, state, created_at, expires_at, file_id, final_sha256)
            VALUES ('\(id)', '\(owner)', \(isDone ? "NULL" : "'\(id)'"), 'name', \(size), 100,
                '{}', '\(state)', 0, 0, \(isDone ? "'\(id)', zeroblob(32)" : "NULL, NULL"));
            """
    }

    private static func file(_ number: Int, _ owner: String, size: Int) -> String {
        let id = String(repeating: "\(number)", count: 32)
        return """
            INSERT INTO file (id, owner, session_id, session, file_name, byte_count, sha256,
                chunk_size, created_at)
            SELECT id, owner, id, number, 'name', \(size), zeroblob(32), 100, 0
            FROM session WHERE id = '\(id)' AND owner = '\(owner)';
            """
    }

    @Test func `the migration adds up the sessions and files that are there`() throws {
        try SQLiteEnvironment().withQueue(isMigrated: false) { queue in
            let files = try Self.migrations()
            let isBefore = { (file: URL) in file.lastPathComponent < "0015" }
            try Self.apply(files.filter(isBefore), to: queue)
            try queue.write { db in
                try db.execute(
                    sql: Self.session(1, "a", "open", size: "100")
                        + Self.session(2, "a", "open", size: "NULL")
                        + Self.session(3, "a", "expired", size: "70")
                        + Self.session(4, "b", "completed", size: "30")
                        + Self.file(4, "b", size: 30)
                        + Self.session(5, "c", "completed", size: "9")
                        + Self.file(5, "c", size: 9)
                        + "UPDATE file SET deleted_at = 1 WHERE owner = 'c'")
            }
            try Self.apply(files.filter { !isBefore($0) }, to: queue)
            #expect(try Self.sums(queue) == ["a 0 100 2", "b 30 0 0"])
        }
    }

    /// Statements of a version that knows no quotas, which may run beside this one.
    @Test func `the sums follow the statements of a version without quotas`() throws {
        try SQLiteEnvironment().withQueue { queue in
            func run(_ sql: String) throws { try queue.write { try $0.execute(sql: sql) } }
            try run(Self.session(1, "a", "open", size: "NULL"))
            #expect(try Self.sums(queue) == ["a 0 0 1"])
            try run("UPDATE session SET file_size = 40 WHERE owner = 'a'")
            #expect(try Self.sums(queue) == ["a 0 40 1"])
            try run("UPDATE session SET expires_at = 5")
            let id = String(repeating: "1", count: 32)
            try run(
                """
                UPDATE session SET state = 'finalizing', file_id = '\(id)',
                    final_sha256 = zeroblob(32)
                """)
            #expect(try Self.sums(queue) == ["a 0 40 1"])
            try run(
                Self.file(1, "a", size: 40)
                    + "UPDATE session SET state = 'completed', staging_key = NULL")
            #expect(try Self.sums(queue) == ["a 40 0 0"])
            try run("UPDATE file SET owner = 'b'; UPDATE session SET owner = 'b'")
            #expect(try Self.sums(queue) == ["a 0 0 0", "b 40 0 0"])
            try run("UPDATE file SET deleted_at = 1; UPDATE file SET session = NULL")
            try run("DELETE FROM session")
            #expect(try Self.sums(queue) == ["a 0 0 0", "b 0 0 0"])
            try run(Self.session(2, "a", "open", size: "7") + "UPDATE session SET owner = 'b'")
            #expect(try Self.sums(queue) == ["a 0 0 0", "b 0 7 1"])
        }
    }

    @Test func `wrong sums are found, keep nothing from being removed, and are repaired`()
        async throws
    {
        let fixture = try SQLiteEnvironment()
        let first = try await fixture.open()
        let (kept, canceled) = (
            try await first.make(Sample.session(fileSize: 60)), try await first.make()
        )
        _ = try await first.make(Sample.session(owner: Sample.stranger))
        try await first.close()
        try fixture.withQueue { queue in
            try queue.write {
                try $0.execute(
                    sql: """
                        UPDATE owner SET reserved_bytes = 5, open_sessions = 0
                        WHERE owner = 'owner';
                        DELETE FROM owner WHERE owner = 'stranger'
                        """)
            }
        }
        let store = try await fixture.open()
        let drifts = try await store.quotaDrifts(after: nil, limit: 10)
        #expect(drifts.map(\.owner) == [Sample.owner, Sample.stranger])
        #expect(drifts.first?.kept?.reservedBytes == 5)
        #expect(drifts.first?.actual.reservedBytes == 310)
        #expect(drifts.last?.kept == nil)
        #expect(try await store.quotaDrifts(after: Sample.owner, limit: 10).count == 1)
        #expect(try await store.quotaDrifts(after: nil, limit: 1).count == 1)

        try await store.cancelSession(canceled.id, owner: canceled.owner)
        #expect(try await store.quota(of: Sample.owner, within: .none).reservedBytes == 0)
        for drift in drifts { try await store.repairQuota(of: drift.owner) }
        #expect(try await store.quotaDrifts(after: nil, limit: 10) == [])
        let quota = try await store.quota(of: Sample.owner, within: .none)
        #expect(quota.reservedBytes == kept.fileSize && quota.openSessionCount == 1)
        try await store.close()
    }
}
