package import KedgeEngine
package import KedgeModel

extension PostgresStore {
    package func changes(of id: SessionID, since revision: Int64) async throws -> SessionChanges? {
        try await changes(of: id, since: revision, ownedBy: nil)
    }

    /// - Parameter owner: Another owner's session is not found, and costs no more than an unknown
    ///   one; nil finds every session.
    func changes(
        of id: SessionID, since revision: Int64, ownedBy owner: OwnerID?
    ) async throws -> SessionChanges? {
        try await single { db in
            // One statement, so that the result is one snapshot.
            let found = try db.query(
                """
                SELECT \(SessionRow.columns),
                    news.idx, news.byte_count, news.sha256, news.location,
                    part.idx, part.byte_count, part.hash_state, part.declared_sha256,
                    part.location, part.kind
                FROM session
                LEFT JOIN LATERAL (
                    SELECT array_agg(idx ORDER BY idx) AS idx,
                        array_agg(byte_count ORDER BY idx) AS byte_count,
                        array_agg(sha256 ORDER BY idx) AS sha256,
                        array_agg(location ORDER BY idx) AS location
                    FROM chunk
                    WHERE chunk.session = session.number AND session.revision <> $2
                        AND chunk.revision > CASE
                            WHEN $2 < session.reset_revision THEN -1 ELSE $2 END
                ) AS news ON true
                LEFT JOIN LATERAL (
                    SELECT array_agg(idx ORDER BY kind / 2, idx) AS idx,
                        array_agg(byte_count ORDER BY kind / 2, idx) AS byte_count,
                        array_agg(hash_state ORDER BY kind / 2, idx) AS hash_state,
                        array_agg(declared_sha256 ORDER BY kind / 2, idx) AS declared_sha256,
                        array_agg(location ORDER BY kind / 2, idx) AS location,
                        array_agg(kind ORDER BY kind / 2, idx) AS kind
                    FROM (
                        SELECT idx, byte_count, hash_state, declared_sha256, location,
                            CASE WHEN in_doubt THEN 1::bigint ELSE 0 END AS kind
                        FROM partial_chunk WHERE partial_chunk.session = session.number
                        UNION ALL
                        SELECT idx, byte_count, hash_state, declared_sha256, location, 2
                        FROM rival_partial WHERE rival_partial.session = session.number
                    ) AS kept
                    WHERE session.revision <> $2
                ) AS part ON true
                WHERE session.id = $1 AND ($3::text IS NULL OR session.owner = $3)
                """, [.text(id.text), .int8(revision), .text(owner?.text)]
            ).firstRow
            return try found.map { try SessionChanges($0, since: revision) }
        }
    }

    /// Idempotent: a token that holds the chunk is granted it again.
    ///
    /// A grant is durable in the logged rows of the chunk's partials, which name the new writer. So
    /// the writer may acknowledge the stored bytes before it has saved any of its own.
    package func claimWriter(
        _ token: FencingToken, of id: SessionID, lease: Duration, takesOver: Bool
    ) async throws -> WriterClaim {
        try await single { db in
            if let holder = try db.claim(token, of: id, lease: lease, takesOver: takesOver) {
                return .held(by: holder)
            }
            try db.takeOverPartials(token, of: id)
            return .granted
        }
    }

    /// Idempotent: sets the same leases. A row that was lost in a crash of the database is not
    /// recreated: it could outlive its writer, which may be releasing it at this moment.
    package func renewWriters(
        _ tokens: [(id: SessionID, token: FencingToken)], lease: Duration
    ) async throws -> [FencingToken] {
        guard !tokens.isEmpty else { return [] }
        return try await single { db in
            try db.query(
                """
                WITH mine AS (
                    SELECT * FROM unnest($1, $2, $3) AS mine (session_id, idx, token)),
                renewed AS (
                    UPDATE writer_lease AS held SET lease_until = \(DatabaseClock.expression) + $4
                    FROM mine
                    WHERE held.session_id = mine.session_id AND held.idx = mine.idx
                        AND held.token = mine.token)
                SELECT mine.idx, mine.token FROM mine
                JOIN writer_lease AS held USING (session_id, idx)
                WHERE held.token <> mine.token OR held.wanted
                """,
                [
                    .texts(tokens.map(\.id.text)), .int4s(tokens.map(\.token.index)),
                    .texts(tokens.map(\.token.text)), .int8(lease.milliseconds),
                ]
            ).rows.map { row in
                var row = row
                return FencingToken(index: Int(try row.integer()), text: try row.text())
            }
        }
    }

    /// Idempotent: the row is gone, or the lease has expired. Notifies a writer that waits for the
    /// chunk.
    ///
    /// The row stays until the chunk is committed, so that a writer that was fenced off stays
    /// fenced off: its late partial would replace a longer one that was acknowledged since.
    package func releaseWriter(_ token: FencingToken, of id: SessionID) async throws {
        try await single { db in
            _ = try db.query(
                """
                WITH was AS (
                    SELECT wanted, EXISTS (
                        SELECT 1 FROM session JOIN chunk ON chunk.session = session.number
                        WHERE session.id = $1 AND chunk.idx = $2) AS committed
                    FROM writer_lease WHERE session_id = $1 AND idx = $2 AND token = $3),
                gone AS (
                    DELETE FROM writer_lease
                    WHERE session_id = $1 AND idx = $2 AND token = $3
                        AND (SELECT committed FROM was)),
                kept AS (
                    UPDATE writer_lease
                    SET lease_until = \(DatabaseClock.expression), wanted = false
                    WHERE session_id = $1 AND idx = $2 AND token = $3
                        AND NOT (SELECT committed FROM was))
                SELECT pg_notify('\(PostgresConnection.channel)', $1)::text
                FROM was WHERE wanted
                """, [.text(id.text), .int4(token.index), .text(token.text)])
        }
    }
}

extension PostgresConnection {
    /// Claims the chunk. Returns the token of the writer that holds it, if it is another one.
    fileprivate func claim(
        _ token: FencingToken, of id: SessionID, lease: Duration, takesOver: Bool
    ) throws -> String? {
        var row = try query(
            """
            WITH claim AS (
                INSERT INTO writer_lease AS held (session_id, idx, token, lease_until, wanted)
                VALUES ($1, $2, $3, \(DatabaseClock.expression) + $4, false)
                ON CONFLICT (session_id, idx) DO UPDATE SET
                    (token, lease_until, wanted) = (
                        SELECT
                            CASE WHEN granted THEN excluded.token ELSE held.token END,
                            CASE WHEN granted THEN excluded.lease_until
                                ELSE held.lease_until END,
                            -- Asking again does not make others want it less.
                            CASE WHEN held.token = excluded.token THEN held.wanted
                                ELSE NOT granted END
                        FROM (SELECT $5 OR held.token = excluded.token
                            OR held.lease_until <= \(DatabaseClock.expression)
                        ) AS decision (granted))
                RETURNING token)
            SELECT token,
                CASE WHEN $5 OR token <> $3
                    THEN pg_notify('\(PostgresConnection.channel)', $1)::text END
            FROM claim
            """,
            [
                .text(id.text), .int4(token.index), .text(token.text),
                .int8(lease.milliseconds), .bool(takesOver),
            ]
        ).firstRow
        guard let holder = try row?.text(), holder != token.text else { return nil }
        return holder
    }

    /// Names the writer in the rows of the chunk's partials and raises their revision, as a save
    /// does. Not in one transaction with the claim, which would lock the lease before the session.
    fileprivate func takeOverPartials(_ token: FencingToken, of id: SessionID) throws {
        _ = try query(
            """
            WITH kept AS (
                SELECT partial_chunk.session
                FROM partial_chunk JOIN session ON session.number = partial_chunk.session
                WHERE session.id = $1 AND idx = $2 AND writer IS DISTINCT FROM $3
                UNION
                SELECT rival_partial.session
                FROM rival_partial JOIN session ON session.number = rival_partial.session
                WHERE session.id = $1 AND idx = $2 AND writer IS DISTINCT FROM $3),
            touched AS (
                UPDATE session SET revision = revision + 1
                WHERE number IN (SELECT session FROM kept) RETURNING number, revision),
            partials AS (
                UPDATE partial_chunk AS kept SET writer = $3, revision = touched.revision
                FROM touched WHERE kept.session = touched.number AND kept.idx = $2)
            UPDATE rival_partial AS kept SET writer = $3, revision = touched.revision
            FROM touched WHERE kept.session = touched.number AND kept.idx = $2
            """, [.text(id.text), .int4(token.index), .text(token.text)])
    }
}

extension SessionChanges {
    /// Reads the session, then the columns of its chunks and partials.
    fileprivate init(_ row: PostgresRow, since known: Int64) throws {
        var row = row
        let session = try SessionRow(&row)
        let chunks = try CommittedChunk.list(&row)
        let partials = try PartialRecord.list(&row)
        self.init(
            record: session.record, revision: session.revision, chunks: chunks,
            partials: session.revision == known ? nil : partials,
            isWhole: session.revision != known && known < session.resetRevision)
    }
}
