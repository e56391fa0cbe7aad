package import KedgeEngine
package import KedgeModel

extension PostgresStore {
    package func isKnown(_ key: StagingKey) async throws -> Bool {
        try await single { db in
            try db.query(
                """
                SELECT 1 FROM session WHERE staging_key = $1
                UNION ALL SELECT 1 FROM garbage WHERE kind = 'staging' AND key = $1
                LIMIT 1
                """, [.text(key.text)]
            ).rowCount > 0
        }
    }

    /// A second run after an unacknowledged commit returns fewer sessions. The result only evicts
    /// them from memory, which happens otherwise, too.
    package func expireSessions(
        now: Timestamp, graceEnd: Timestamp, limit: Int
    ) async throws -> [SessionID] {
        try await write { db in
            var changed = try db.expireOpenSessions(at: now, limit: limit)
            for forget in [db.forgetEndedSessions, db.forgetSessionsOfDeletedFiles] {
                let forgotten = try forget(graceEnd, limit - changed.count)
                changed += forgotten.filter { !changed.contains($0) }
            }
            try db.dropStaleWriters()
            try db.forgetLinks(
                endedBefore: now.advanced(by: .zero - LinkRows.margin), limit: limit)
            return changed
        }
    }

    /// The garbage of a first run without an acknowledged commit is claimed again when its lease
    /// expires.
    package func claimGarbage(
        now: Timestamp, leaseUntil: Timestamp, limit: Int
    ) async throws -> [Garbage] {
        try await write { db in
            try db.query(
                """
                WITH due AS (
                    SELECT kind, key FROM garbage WHERE lease_until <= $1
                    ORDER BY lease_until LIMIT $3 FOR UPDATE SKIP LOCKED),
                needed AS (
                    SELECT key FROM due WHERE kind = 'blob' AND (
                        EXISTS (
                            SELECT 1 FROM file
                            WHERE sha256 = decode(due.key, 'hex') AND deleted_at IS NULL)
                        OR EXISTS (
                            SELECT 1 FROM session
                            WHERE final_sha256 = decode(due.key, 'hex') AND state = 'finalizing'))),
                dropped AS (
                    DELETE FROM garbage WHERE kind = 'blob' AND key IN (SELECT key FROM needed))
                UPDATE garbage SET lease_until = $2 FROM due
                WHERE garbage.kind = due.kind AND garbage.key = due.key
                    AND NOT (due.kind = 'blob' AND due.key IN (SELECT key FROM needed))
                RETURNING garbage.kind, garbage.key, garbage.state
                """, [.time(now), .time(leaseUntil), .int8(Int64(limit))]
            ).rows.map { try Garbage($0) }
        }
    }

    /// Idempotent: a missing row is not an error.
    package func forgetGarbage(
        _ garbage: Garbage, claimedUntil end: Timestamp
    ) async throws {
        try await write { db in
            _ = try db.query(
                "DELETE FROM garbage WHERE kind = $1 AND key = $2 AND lease_until = $3",
                [.text(garbage.kind), .text(garbage.key), .time(end)])
        }
    }

    /// Idempotent: an existing row stays.
    package func addToGarbage(_ key: StagingKey) async throws {
        try await write { db in
            let isTaken =
                try db.query(
                    "SELECT 1 FROM session WHERE staging_key = $1", [.text(key.text)]
                ).rowCount > 0
            if !isTaken { try db.add(.staging(key)) }
        }
    }

    package func isNeeded(_ digest: SHA256Digest) async throws -> Bool {
        try await single { try $0.isNeeded(digest) }
    }
}
