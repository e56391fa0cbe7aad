import Foundation
import GRDB
import KedgeClient
import KedgeFiles
import KedgeHash
import KedgeModel
import Testing

/// Records from before the client had a choice of protocols.
@Suite(.timeLimit(.minutes(1)))
struct UploadMigrationTests {
    @Test func `an unfinished upload of an older kedge goes on`() async throws {
        let fixture = try TransferEnvironment()
        let bytes = TransferEnvironment.bytes(200_000)
        let path = try fixture.write("source.bin", bytes)
        let id: TransferID
        do {
            let client = try await fixture.client()
            id = try await client.enqueueUpload(path: path)
            try await client.close()
        }
        // The older schema is the first migration alone. Its rows have the columns of both schemas.
        let file = fixture.path("state/transfers.sqlite")
        let old = fixture.path("old.sqlite")
        let queue = try DatabaseQueue(path: old)
        let first = try #require(EmbeddedMigrations.all.first)
        try await queue.writeWithoutTransaction { database in
            try database.execute(sql: first.sql)
            try database.execute(
                sql: """
                    CREATE TABLE schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL,
                        sha256 TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT
                    """)
            try database.execute(
                sql: "INSERT INTO schema_migration VALUES (?, ?, ?, 0)",
                arguments: [
                    first.number, first.name, SHA256Hasher.digest(of: Array(first.sql.utf8)).hex,
                ])
            try database.execute(sql: "ATTACH ? AS newer", arguments: [file])
            let columns = try String.fetchAll(
                database,
                sql: "SELECT name FROM pragma_table_info('upload_transfer') ORDER BY cid"
            ).joined(separator: ", ")
            try database.execute(
                sql: """
                    INSERT INTO upload_transfer (\(columns))
                    SELECT \(columns) FROM newer.upload_transfer
                    """)
        }
        try queue.close()
        for suffix in ["-wal", "-shm"] {
            // SQLite may have removed the file already.
            try? FileManager.default.removeItem(atPath: file + suffix)
        }
        try FileManager.default.removeItem(atPath: file)
        try FileManager.default.moveItem(atPath: old, toPath: file)

        let client = try await fixture.client()
        #expect(try await client.enqueueUpload(path: path) == id)
        #expect(try await client.transfer(id).uploadProtocol == .native)
        fixture.expectUploaded(try await client.run(id), bytes)
    }
}
