import GRDB
import KedgeEngine
import KedgeModel
import KedgeSQLite
import KedgeTesting
import Testing

struct SchemaTests {
    /// Statements that say something impossible about a session with one file.
    private static let impossible = [
        "UPDATE session SET state = 'lost'",
        "UPDATE session SET id = 'short'",
        "UPDATE session SET id = upper(id)",
        "UPDATE session SET owner = ''",
        "UPDATE session SET file_size = -1",
        "UPDATE session SET file_size = NULL",
        "UPDATE session SET chunk_size = 0",
        "UPDATE session SET final_sha256 = NULL",
        "UPDATE session SET final_sha256 = x'00'",
        "UPDATE session SET file_id = NULL, final_sha256 = NULL",
        "UPDATE session SET state = 'open'",
        "UPDATE session SET prefix_offset = 1",
        "UPDATE session SET prefix_offset = 251, prefix_state = x'00'",
        "UPDATE session SET metadata = 'no JSON'",
        "UPDATE session SET created_at = 'yesterday'",
        "UPDATE chunk SET byte_count = 101",
        "UPDATE chunk SET byte_count = 0",
        "UPDATE chunk SET idx = -1",
        "UPDATE chunk SET sha256 = x'00'",
        "UPDATE chunk SET session = 77",
        "INSERT INTO chunk VALUES (1, 0, 1, 100, zeroblob(32), NULL)",
        "INSERT INTO partial_chunk VALUES (1, 0, 100, 100, x'00', NULL, NULL, 0)",
        "INSERT INTO partial_chunk VALUES (1, 0, 1, 100, x'', NULL, NULL, 0)",
        "INSERT INTO partial_chunk VALUES (1, 0, 1, 200, x'00', NULL, NULL, 0)",
        "INSERT INTO partial_chunk VALUES (1, 0, 1, 100, x'00', NULL, NULL, 2)",
        "INSERT INTO rival_partial VALUES (1, 0, 1, 100, x'00', NULL, NULL)",
        "UPDATE file SET byte_count = -1",
        "UPDATE file SET sha256 = x'00'",
        "UPDATE file SET session = NULL",
        "DELETE FROM session",
        "INSERT INTO idempotency_key VALUES ('o', 'k', 'f', 77)",
        "INSERT INTO garbage VALUES ('blob', 'abc', 0, NULL)",
        "INSERT INTO garbage VALUES ('rest', '00000000000000000000000000000000', 0, NULL)",
    ]

    @Test(arguments: impossible)
    func `a row that contradicts itself cannot be stored`(_ statement: String) async throws {
        let fixture = try SQLiteEnvironment()
        let store = try await fixture.open()
        let record = Sample.session()
        _ = try await store.createSession(record, idempotencyKey: nil, adopting: nil)
        _ = try await store.commit(
            (0..<3).map { Sample.chunk($0) }, touching: Sample.touch(record))
        _ = try await store.beginFinalize(
            of: record.id, digest: Sample.digest("a"), fileID: .random())
        _ = try await store.completeFinalize(of: record.id, at: Sample.time(1))
        try await store.close()

        try fixture.withQueue { queue in
            let error = #expect(throws: DatabaseError.self) {
                try queue.write { try $0.execute(sql: statement) }
            }
            #expect(error?.resultCode == .SQLITE_CONSTRAINT)
        }
    }
}
