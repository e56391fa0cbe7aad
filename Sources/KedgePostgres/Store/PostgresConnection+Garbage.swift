internal import KedgeEngine
internal import KedgeModel

extension PostgresConnection {
    /// Whether a file or a finalizing session needs the blob.
    func isNeeded(_ digest: SHA256Digest) throws -> Bool {
        try query(
            """
            SELECT 1 FROM file WHERE sha256 = $1 AND deleted_at IS NULL
            UNION ALL SELECT 1 FROM session WHERE final_sha256 = $1 AND state = 'finalizing'
            LIMIT 1
            """, [.digest(digest)]
        ).rowCount > 0
    }

    /// Leaves a session's bytes to the sweep. Takes the session as it was before it ended.
    func makeGarbage(ofBytesOf session: SessionRow) throws {
        if session.hasStaging {
            try add(.staging(session.record.stagingKey, state: session.stagingState))
        }
        // A finalizing session may already have its blob.
        if session.record.state == .finalizing, let digest = session.record.finalDigest {
            try makeGarbage(unlessNeeded: digest)
        }
    }

    /// Leaves a blob to the sweep unless it is needed. Called in the transaction that changed the
    /// row that needed it, after that change.
    func makeGarbage(unlessNeeded digest: SHA256Digest) throws {
        // Without the lock, two transactions that release the same blob would each see the other's
        // old row, and both would keep the blob.
        _ = try query("SELECT pg_advisory_xact_lock($1)::text", [.int8(digest.lockKey)])
        if try !isNeeded(digest) { try add(.blob(digest)) }
    }

    func add(_ garbage: Garbage) throws {
        _ = try query(
            """
            INSERT INTO garbage (kind, key, state) VALUES ($1, $2, $3)
            ON CONFLICT (kind, key) DO UPDATE SET lease_until = 0,
                state = coalesce(excluded.state, garbage.state)
            """,
            [.text(garbage.kind), .text(garbage.key), .text(garbage.state)])
    }
}

extension Garbage {
    /// Reads the columns kind, key and state.
    init(_ row: PostgresRow) throws {
        var row = row
        try self.init(
            kind: try row.text(), key: try row.text(), state: row.optionalText())
    }
}

extension SHA256Digest {
    /// The digest's advisory lock. Digests that share one only wait for each other. Migrations lock
    /// two integers, which is a separate space of locks.
    fileprivate var lockKey: Int64 { bytes.prefix(8).reduce(0) { $0 << 8 | Int64($1) } }
}
