internal import KedgeEngine
internal import KedgeModel

// The limit of open sessions, shared by all nodes.
extension PostgresConnection {
    /// Creates only wait for each other within this distance of the limit. Fewer creates than this
    /// run at once.
    private static let slack: Int64 = 1000
    /// An arbitrary number that no other lock uses.
    private static let roomLock: Int64 = 0x6B65_6467_655F_726F

    /// Whether the limit of open sessions is reached. Near the limit, creates wait for each other
    /// until the transaction ends.
    ///
    /// A second run after an unacknowledged commit finds its session and needs no room.
    func lacksRoom(for record: SessionRecord, of limit: Int) throws -> Bool {
        guard try openCount() + Self.slack >= Int64(limit) else { return false }
        _ = try query("SELECT pg_advisory_xact_lock($1)::text", [.int8(Self.roomLock)])
        guard try openCount() >= Int64(limit) else { return false }
        return try session(record.id) == nil
    }

    private func openCount() throws -> Int64 {
        var row = try query("SELECT count(*) FROM session WHERE state = 'open'").firstRow
        return try row?.integer() ?? 0
    }

    /// Deletes the oldest empty session of the client that has the most of them. Sessions that are
    /// being written, here or on another node, are kept.
    ///
    /// - Parameter owner: The owner of the new session.
    /// - Returns: Nil when every open session has bytes or a writer.
    func makeRoom(for owner: OwnerID, besides busy: Set<SessionID>) throws -> SessionID? {
        let busy = PostgresValue.texts(busy.map(\.text))
        // A writer locks the session before it records a byte. Locked sessions are therefore
        // skipped, and a session locked here gets no further bytes before the next statement.
        for _ in 0..<8 {
            let found = try query(
                """
                WITH candidate AS (
                    SELECT client, number FROM session
                    WHERE empty_since IS NOT NULL AND state = 'open' AND id <> ALL($1)
                        AND NOT EXISTS (SELECT 1 FROM finalize_job WHERE session = number)
                        AND NOT EXISTS (
                            SELECT 1 FROM writer_lease WHERE session_id = session.id
                                AND lease_until > \(DatabaseClock.expression))),
                largest AS (
                    SELECT client FROM candidate GROUP BY client
                    ORDER BY count(*) DESC, min(number) LIMIT 1)
                SELECT number FROM session
                WHERE number IN (
                    SELECT number FROM candidate JOIN largest
                        ON candidate.client IS NOT DISTINCT FROM largest.client)
                ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED
                """, [busy]
            ).firstRow
            guard var found else { return nil }
            if let ended = try forgetEmpty(try found.integer(), for: owner) { return ended }
        }
        return nil
    }

    /// Deletes a locked session unless it has bytes or has ended by now.
    private func forgetEmpty(_ number: Int64, for owner: OwnerID) throws -> SessionID? {
        let still = try query(
            """
            SELECT \(SessionRow.columns) FROM session
            WHERE number = $1 AND empty_since IS NOT NULL AND state = 'open'
            """, [.int8(number)]
        ).firstRow
        guard let still else { return nil }
        let session = try SessionRow(still)
        try lock([session.record.owner, owner])
        // The idempotency key is deleted with it.
        _ = try query("DELETE FROM session WHERE number = $1", [.int8(number)])
        try makeGarbage(ofBytesOf: session)
        try notify(session.record.id)
        return session.record.id
    }
}

// The limit of final uploads that use one session.
extension PostgresConnection {
    /// Whether one of the sessions has reached the limit. Their rows stay locked until the
    /// transaction ends.
    func areUsedUp(_ sourceIDs: [SessionID], at limit: Int) throws -> Bool {
        // A common order of locking avoids deadlocks. The counts are read in a later statement.
        _ = try query(
            "SELECT number FROM session WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE",
            [.texts(sourceIDs.map(\.text))])
        return try query(
            "SELECT 1 FROM session WHERE id = ANY($1) AND composition_count >= $2 LIMIT 1",
            [.texts(sourceIDs.map(\.text)), .int8(Int64(limit))]
        ).rowCount > 0
    }

    /// Counts one more final upload for each of the sessions. A second run after an unacknowledged
    /// commit may count twice, and so only allows fewer.
    func use(_ sourceIDs: [SessionID]) throws {
        _ = try query(
            "UPDATE session SET composition_count = composition_count + 1 WHERE id = ANY($1)",
            [.texts(sourceIDs.map(\.text))])
    }
}
