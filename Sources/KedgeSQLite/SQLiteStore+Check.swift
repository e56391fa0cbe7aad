internal import Foundation
internal import GRDB
package import KedgeEngine
package import KedgeModel

extension SQLiteStore: CheckedRows {
    package func databaseFaults() async throws -> [CheckFinding] {
        do {
            return try await commits.read { db in
                let damage = try db.damage()
                return damage.isEmpty ? try db.brokenReferences() : damage
            }
        } catch MetadataError.failed {
            // The damage is so severe that the check itself failed.
            return [CheckFinding(.databaseDamaged, "database", "it cannot be read to its end")]
        }
    }

    package func byteStoreIdentity() async throws -> String? {
        try await commits.read { db in try db.row("SELECT identity FROM byte_place", [])?[0] }
    }

    package func promisedByteCount() async throws -> Int64 {
        try await commits.read { db in
            let row = try db.row(
                """
                SELECT (SELECT coalesce(sum(byte_count), 0) FROM (
                        SELECT DISTINCT sha256, byte_count FROM file WHERE deleted_at IS NULL))
                    + (SELECT coalesce(sum(chunk.byte_count), 0) FROM chunk
                        JOIN session ON session.number = chunk.session
                        WHERE session.staging_key IS NOT NULL)
                    + (SELECT coalesce(sum(partial_chunk.byte_count), 0) FROM partial_chunk
                        JOIN session ON session.number = partial_chunk.session
                        WHERE session.staging_key IS NOT NULL)
                """, [])
            return row?[0] ?? 0
        }
    }

    package func sessionsWithBytes(
        after id: SessionID?, limit: Int
    ) async throws -> [SessionRecord] {
        try await commits.read { db in
            try db.rows(
                """
                SELECT \(SessionRow.columns) FROM session
                WHERE staging_key IS NOT NULL AND id > ? ORDER BY id LIMIT ?
                """, [id?.text ?? "", limit]
            ).map { try SessionRow($0).record }
        }
    }

    package func sessionWithBytes(_ id: SessionID) async throws -> SessionRecord? {
        try await commits.read { db in
            guard let session = try db.session(id), session.hasStaging else { return nil }
            return session.record
        }
    }

    package func chunks(
        of id: SessionID, from index: Int, limit: Int
    ) async throws -> [CommittedChunk] {
        try await commits.read { db in
            try db.rows(
                """
                SELECT idx, byte_count, sha256, location FROM chunk
                WHERE session = (SELECT number FROM session WHERE id = ?) AND idx >= ?
                ORDER BY idx LIMIT ?
                """, [id.text, index, limit]
            ).map { try CommittedChunk($0) }
        }
    }

    package func partials(
        of id: SessionID, from index: Int, limit: Int
    ) async throws -> [PartialRecord] {
        try await commits.read { db in
            try db.rows(
                """
                SELECT \(PartialRecord.columns) FROM partial_chunk
                WHERE session = (SELECT number FROM session WHERE id = ?) AND idx >= ?
                ORDER BY idx LIMIT ?
                """, [id.text, index, limit]
            ).map { try PartialRecord($0) }
        }
    }

    package func liveFiles(after file: FileRecord?, limit: Int) async throws -> [FileRecord] {
        try await commits.read { db in
            try db.rows(
                """
                SELECT \(FileRecord.columns) FROM \(FileRecord.source)
                WHERE file.deleted_at IS NULL AND (file.sha256, file.id) > (?, ?)
                ORDER BY file.sha256, file.id LIMIT ?
                """, [file?.digest.data ?? Data(), file?.id.text ?? "", limit]
            ).map { try FileRecord($0) }
        }
    }

    package func liveFile(_ id: FileID) async throws -> FileRecord? {
        try await commits.read { db in
            guard let file = try db.file(id), file.deletedAt == nil else { return nil }
            return file
        }
    }

    package func quotaDrifts(after owner: OwnerID?, limit: Int) async throws -> [QuotaDrift] {
        try await commits.read { db in try db.quotaDrifts(after: owner, limit: limit) }
    }

    package func isKnown(_ bytes: StoredBytes) async throws -> Bool {
        switch bytes {
        case .staging(let key):
            if try await isKnown(key) { return true }
            return try await blobLocation(fromStaging: key) != nil
        case .superseded(let digest, let key):
            return try await commits.read { db in
                try db.exists(
                    "SELECT 1 FROM superseded_blob WHERE staging_key = ? AND sha256 = ?",
                    [key.text, digest.data])
            }
        case .blob(let digest):
            return try await commits.read { db in
                let isGarbage = try db.exists(
                    "SELECT 1 FROM garbage WHERE kind = 'blob' AND key = ?", [digest.hex])
                return try isGarbage || db.isNeeded(digest)
            }
        }
    }
}

extension Database {
    /// Runs SQLite's check of pages, indexes and constraints; reports at most a hundred findings.
    fileprivate func damage() throws -> [CheckFinding] {
        try rows("PRAGMA integrity_check", [])
            .map { $0[0] as String }
            .filter { $0 != "ok" }
            .map { CheckFinding(.databaseDamaged, "database", $0) }
    }

    /// Reports rows that refer to a missing row, counted by table.
    fileprivate func brokenReferences() throws -> [CheckFinding] {
        try rows(
            """
            SELECT "table" AS child, parent, count(*) AS number FROM pragma_foreign_key_check
            GROUP BY child, parent ORDER BY child, parent
            """, []
        ).map { row in
            let (child, parent, number) =
                (row["child"] as String, row["parent"] as String, row["number"] as Int)
            return CheckFinding(
                .referenceBroken, child, "\(number) rows point to a missing row of \(parent)")
        }
    }
}
