internal import KedgeEngine
internal import KedgeModel

extension PostgresConnection {
    /// True while a file or a finalizing session needs the blob.
    func isNeeded(_ digest: SHA256Digest) throws -> Bool {
        try query(
            """
            SELECT 1 FROM file WHERE sha256 = $1 AND deleted_at IS NULL
            UNION ALL SELECT 1 FROM session WHERE final_sha256 = $1 AND state = 'finalizing'
            LIMIT 1
            """, [.digest(digest)]
        ).rowCount > 0
    }

    /// Leaves the bytes of a session, as it was before it ended, to the sweep.
    func makeGarbage(ofBytesOf session: SessionRow) throws {
        if session.hasStaging {
            try add(.staging(session.record.stagingKey, state: session.stagingState))
        }
        // A session that was finalizing may have its blob already.
        if session.record.state == .finalizing, let digest = session.record.finalDigest {
            try makeGarbage(unlessNeeded: digest)
        }
    }

    /// Leaves a blob to the sweep unless somebody needs it. Called after the row that needed it has
    /// changed, in the same transaction.
    func makeGarbage(unlessNeeded digest: SHA256Digest) throws {
        // Of two that give up the same blob at once, each would see the other one's row as it was,
        // and nobody would be the last.
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
    /// Reads kind, key and state.
    init(_ row: PostgresRow) throws {
        var row = row
        try self.init(
            kind: try row.text(), key: try row.text(), state: row.optionalText())
    }
}

extension SHA256Digest {
    /// The digest's advisory lock. Two digests with the same one only wait for each other.
    /// Migrations lock two integers instead, which is another space of locks.
    fileprivate var lockKey: Int64 { bytes.prefix(8).reduce(0) { $0 << 8 | Int64($1) } }
}
