internal import KedgeEngine
internal import KedgeModel

// Rows locked by another transaction are skipped: it changes or sweeps them itself.
extension PostgresConnection {
    /// Expires open sessions whose time is over. A session with a finalize job is not abandoned,
    /// only slow, and stays.
    func expireOpenSessions(at now: Timestamp, limit: Int) throws -> [SessionID] {
        let over = try query(
            """
            SELECT number, owner FROM session
            WHERE state = 'open' AND expires_hour <= $1 / 3600000 AND expires_at <= $1
                AND NOT EXISTS (SELECT 1 FROM finalize_job WHERE session = number)
            ORDER BY expires_hour LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED
            """, [.time(now), .int8(Int64(limit))]
        ).rows.map { row in
            var row = row
            return (number: try row.integer(), owner: OwnerID(try row.text()))
        }
        guard !over.isEmpty else { return [] }
        try lock(Set(over.map(\.owner)))
        return try query(
            """
            UPDATE session SET state = 'expired', revision = revision + 1
            WHERE number = ANY ($1) RETURNING id
            """, [.int8s(over.map(\.number))]
        ).identifiers()
    }

    /// Deletes sessions that no client can continue or adopt any more.
    func forgetEndedSessions(expiredBefore graceEnd: Timestamp, limit: Int) throws -> [SessionID] {
        try forget(
            """
            SELECT number, id, staging_key, staging_state FROM session
            WHERE state IN ('expired', 'canceled') AND expires_hour <= $1 / 3600000
                AND expires_at < $1
            ORDER BY expires_hour LIMIT $2 FOR UPDATE SKIP LOCKED
            """, graceEnd, limit)
    }

    /// Deletes sessions whose file was deleted.
    func forgetSessionsOfDeletedFiles(
        expiredBefore graceEnd: Timestamp, limit: Int
    ) throws -> [SessionID] {
        try forget(
            """
            SELECT session.number, session.id, session.staging_key, session.staging_state
            FROM file JOIN session ON session.number = file.session
            WHERE file.deleted_at IS NOT NULL AND file.session IS NOT NULL
                AND session.expires_at < $1
            LIMIT $2 FOR UPDATE OF session SKIP LOCKED
            """, graceEnd, limit)
    }

    /// Removes leases that are not needed any more: of sessions that are not open, and those that
    /// expired ten minutes ago, when the fenced-off writer is gone as well.
    func dropStaleWriters() throws {
        _ = try query(
            """
            DELETE FROM writer_lease
            WHERE lease_until < \(DatabaseClock.expression) - 600000
                OR NOT EXISTS (
                    SELECT 1 FROM session WHERE session.id = session_id AND state = 'open')
            """)
    }

    /// Deletes the sessions with their chunks, partials and idempotency keys; their bytes become
    /// garbage.
    private func forget(
        _ condemned: String, _ graceEnd: Timestamp, _ limit: Int
    ) throws -> [SessionID] {
        try query(
            """
            WITH condemned AS (\(condemned)),
            swept AS (
                INSERT INTO garbage (kind, key, state)
                SELECT 'staging', staging_key, staging_state FROM condemned
                WHERE staging_key IS NOT NULL
                ON CONFLICT (kind, key) DO UPDATE SET lease_until = 0,
                    state = coalesce(excluded.state, garbage.state)),
            gone AS (DELETE FROM session WHERE number IN (SELECT number FROM condemned))
            SELECT id FROM condemned
            """, [.time(graceEnd), .int8(Int64(limit))]
        ).identifiers()
    }
}

extension PostgresResult {
    /// The identifiers in the only column.
    fileprivate func identifiers() throws -> [SessionID] {
        try rows.map { row in
            var row = row
            return try row.identifier()
        }
    }
}
