internal import Foundation
internal import GRDB
package import KedgeEngine
package import KedgeModel

// Finalize jobs, and the records of the byte store.
extension SQLiteStore {
    package func takeFinalize(
        of id: SessionID, expecting expected: SHA256Digest?, lease: WorkLease
    ) async throws -> Bool {
        try await commits.write { db in
            let session = try db.session(id, in: .open, .finalizing)
            let changed = try db.run(
                """
                INSERT INTO finalize_job (session, expected_sha256, holder, lease_until)
                VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT DO UPDATE SET holder = ?3, lease_until = ?4,
                    expected_sha256 = coalesce(?2, expected_sha256)
                WHERE holder = ?3 OR lease_until <= ?5
                """,
                [
                    session.number, expected?.data, lease.holder,
                    lease.until.millisecondsSinceEpoch, lease.now.millisecondsSinceEpoch,
                ])
            guard changed == 1 else { return false }
            try db.keep(session, until: lease.until)
            return true
        }
    }

    package func renewFinalize(of id: SessionID, lease: WorkLease) async throws {
        try await commits.write { db in
            guard let session = try db.session(id) else { return }
            let changed = try db.run(
                "UPDATE finalize_job SET lease_until = ? WHERE session = ? AND holder = ?",
                [lease.until.millisecondsSinceEpoch, session.number, lease.holder])
            if changed == 1 { try db.keep(session, until: lease.until) }
        }
    }

    package func discardFinalize(of id: SessionID, by lease: WorkLease) async throws {
        try await commits.write { db in
            guard let session = try db.session(id) else { return }
            try db.run(
                "DELETE FROM finalize_job WHERE session = ? AND (holder = ? OR lease_until <= ?)",
                [session.number, lease.holder, lease.now.millisecondsSinceEpoch])
        }
    }

    package func takeAbandonedFinalizes(
        lease: WorkLease, limit: Int
    ) async throws -> [FinalizeJob] {
        try await commits.write { db in
            let (now, until) = (
                lease.now.millisecondsSinceEpoch, lease.until.millisecondsSinceEpoch
            )
            // A process that stopped after its first transaction has left a session without a job.
            try db.run(
                """
                INSERT INTO finalize_job (session, holder, lease_until)
                SELECT number, ?, 0 FROM session WHERE state = 'finalizing'
                ON CONFLICT DO NOTHING
                """, [lease.holder])
            let rows = try db.rows(
                """
                SELECT expected_sha256, \(SessionRow.columns)
                FROM finalize_job JOIN session ON session.number = finalize_job.session
                WHERE finalize_job.lease_until <= ? ORDER BY finalize_job.lease_until LIMIT ?
                """, [now, limit])
            return try rows.map { row in
                let session = try SessionRow(row)
                try db.run(
                    "UPDATE finalize_job SET holder = ?, lease_until = ? WHERE session = ?",
                    [lease.holder, until, session.number])
                try db.keep(session, until: lease.until)
                return FinalizeJob(
                    record: try db.knownSession(session.record.id).record,
                    expected: try row.digest("expected_sha256"))
            }
        }
    }

    package func savePrefix(
        _ prefix: HashCheckpoint, of id: SessionID, knowing revision: Int64?
    ) async throws {
        try await commits.write { db in
            let session = try db.session(id, in: .open, .finalizing)
            try db.save(prefix, of: session)
        }
    }

    package func stagingState(of key: StagingKey) async throws -> String? {
        try await commits.read { db in
            try db.row("SELECT staging_state FROM session WHERE staging_key = ?", [key.text])?[0]
        }
    }

    package func setStagingState(
        _ state: String?, of key: StagingKey, replacing expected: String?
    ) async throws -> String? {
        try await commits.write { db in
            try db.run(
                "UPDATE session SET staging_state = ? WHERE staging_key = ? AND staging_state IS ?",
                [state, key.text, expected])
            guard
                let row = try db.row(
                    "SELECT staging_state FROM session WHERE staging_key = ?", [key.text])
            else { throw MetadataError.notFound }
            return row[0]
        }
    }

    package func bind(toBytesAt identity: String) async throws {
        try await commits.write { db in
            try db.run(
                "INSERT INTO byte_place (id, identity) VALUES (1, ?) ON CONFLICT DO NOTHING",
                [identity])
            let stored = try db.row("SELECT identity FROM byte_place", [])?[0] as String?
            guard stored == identity else {
                throw MetadataError.foreignBytes(stored ?? "")
            }
        }
    }
}

extension Database {
    fileprivate func keep(_ session: SessionRow, until time: Timestamp) throws {
        try run(
            "UPDATE session SET expires_at = max(expires_at, ?) WHERE number = ?",
            [time.millisecondsSinceEpoch, session.number])
    }
}
