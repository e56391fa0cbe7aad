internal import GRDB
package import KedgeEngine
package import KedgeModel

extension SQLiteStore {
    package func isKnown(_ key: StagingKey) async throws -> Bool {
        try await commits.read { db in
            try db.exists(
                """
                SELECT 1 FROM session WHERE staging_key = ?1
                UNION ALL SELECT 1 FROM garbage WHERE kind = 'staging' AND key = ?1
                LIMIT 1
                """, [key.text])
        }
    }

    package func expireSessions(
        now: Timestamp, graceEnd: Timestamp, limit: Int
    ) async throws -> [SessionID] {
        try await commits.write { db in
            var changed: [SessionID] = []
            for session in try db.openSessions(overAt: now, limit: limit) {
                try db.run(
                    "UPDATE session SET state = 'expired' WHERE number = ?", [session.number])
                changed.append(session.record.id)
            }
            let rest = limit - changed.count
            for session in try db.forgettableSessions(expiredBefore: graceEnd, limit: rest) {
                // Chunks, partials and the idempotency key are deleted with it.
                try db.run("DELETE FROM session WHERE number = ?", [session.number])
                try db.makeGarbage(ofBytesOf: session)
                if !changed.contains(session.record.id) { changed.append(session.record.id) }
            }
            try db.forgetLinks(
                endedBefore: now.advanced(by: .zero - LinkRows.margin), limit: limit)
            return changed
        }
    }

    package func claimGarbage(
        now: Timestamp, leaseUntil: Timestamp, limit: Int
    ) async throws -> [Garbage] {
        try await commits.write { db in
            let rows = try db.rows(
                """
                SELECT kind, key, state FROM garbage WHERE lease_until <= ?
                ORDER BY lease_until, kind, key LIMIT ?
                """, [now.millisecondsSinceEpoch, limit])
            return try rows.compactMap { row in
                let garbage = try Garbage(row)
                if case .blob(let digest) = garbage, try db.isNeeded(digest) {
                    try db.forget(garbage)
                    return nil
                }
                try db.run(
                    "UPDATE garbage SET lease_until = ? WHERE kind = ? AND key = ?",
                    [leaseUntil.millisecondsSinceEpoch, garbage.kind, garbage.key])
                return garbage
            }
        }
    }

    package func forgetGarbage(
        _ garbage: Garbage, claimedUntil end: Timestamp
    ) async throws {
        try await commits.write { db in
            _ = try db.run(
                "DELETE FROM garbage WHERE kind = ? AND key = ? AND lease_until = ?",
                [garbage.kind, garbage.key, end.millisecondsSinceEpoch])
        }
    }

    package func addToGarbage(_ key: StagingKey) async throws {
        try await commits.write { db in
            let isTaken = try db.exists(
                "SELECT 1 FROM session WHERE staging_key = ?", [key.text])
            if !isTaken { try db.add(.staging(key)) }
        }
    }

    package func isNeeded(_ digest: SHA256Digest) async throws -> Bool {
        try await commits.read { try $0.isNeeded(digest) }
    }
}

extension Database {
    fileprivate func openSessions(overAt now: Timestamp, limit: Int) throws -> [SessionRow] {
        try rows(
            """
            SELECT \(SessionRow.columns) FROM session
            WHERE state = 'open' AND expires_at <= ?
                AND NOT EXISTS (SELECT 1 FROM finalize_job WHERE session = number)
            ORDER BY expires_at LIMIT ?
            """, [now.millisecondsSinceEpoch, limit]
        ).map { try SessionRow($0) }
    }

    /// Returns sessions that no client can continue or adopt any more, and those whose file was
    /// deleted.
    fileprivate func forgettableSessions(
        expiredBefore graceEnd: Timestamp, limit: Int
    ) throws -> [SessionRow] {
        let ended = try rows(
            """
            SELECT \(SessionRow.columns) FROM session
            WHERE state IN ('expired', 'canceled') AND expires_at < ?
            ORDER BY expires_at LIMIT ?
            """, [graceEnd.millisecondsSinceEpoch, limit])
        let orphaned = try rows(
            """
            SELECT \(SessionRow.columns)
            FROM file INDEXED BY file_with_orphaned_session
                JOIN session ON session.number = file.session
            WHERE file.deleted_at IS NOT NULL AND file.session IS NOT NULL
                AND session.expires_at < ?
            LIMIT ?
            """, [graceEnd.millisecondsSinceEpoch, limit - ended.count])
        return try (ended + orphaned).map { try SessionRow($0) }
    }
}
