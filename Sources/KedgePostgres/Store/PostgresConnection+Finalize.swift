internal import KedgeEngine
internal import KedgeModel

extension PostgresConnection {
    /// Records the blob of a finalizing session and schedules its scrub. An older blob of the same
    /// bytes is superseded. With a location, the sweep removes the rest of the staging area: pieces
    /// and lost uploads.
    func keepBlob(
        of session: SessionRow, at location: String?, now: Timestamp, keepUntil: Timestamp
    ) throws {
        guard let digest = session.record.finalDigest, let size = session.record.fileSize else {
            throw MetadataError.failed("a finalizing session has no digest")
        }
        guard let location else { return try beginScrub(of: digest, byteCount: size, at: now) }
        // Two sessions with the same bytes that finalize at once wait here for each other: the
        // later one supersedes the earlier. Deleting the last file waits here, too.
        _ = try query(
            """
            INSERT INTO blob (sha256, byte_count, staging_key, location) VALUES ($1, $2, $3, $4)
            ON CONFLICT (sha256) DO UPDATE SET sha256 = excluded.sha256
            """,
            [
                .digest(digest), .int8(size), .text(session.record.stagingKey.text),
                .text(location),
            ])
        try beginScrub(of: digest, byteCount: size, at: now)
        try supersede(digest, size, by: session.record.stagingKey, at: location, keepUntil)
        try add(.staging(session.record.stagingKey, state: session.stagingState))
    }

    /// Replaces the blob's location; the old one becomes a superseded copy.
    private func supersede(
        _ digest: SHA256Digest, _ byteCount: Int64, by key: StagingKey, at location: String,
        _ keepUntil: Timestamp
    ) throws {
        let known = try query(
            "SELECT staging_key, location FROM blob WHERE sha256 = $1", [.digest(digest)])
        guard var row = known.firstRow else { return }
        let (oldKey, old) = (StagingKey(try row.text()), try row.text())
        guard old != location else { return }
        try add(
            SupersededBlob(
                digest: digest, byteCount: byteCount, key: oldKey, location: old,
                keepUntil: keepUntil))
        // Nodes of the previous version do not know copies and would remove the area with the
        // object.
        _ = try query(
            "DELETE FROM garbage WHERE kind = 'staging' AND key = $1", [.text(oldKey.text)])
        _ = try query(
            "UPDATE blob SET staging_key = $2, location = $3 WHERE sha256 = $1",
            [.digest(digest), .text(key.text), .text(location)])
    }

    /// Creates the file of a finalizing session and completes the session.
    func makeFile(of session: SessionRow, at now: Timestamp) throws {
        try release(sourcesOf: session.record, at: now)
        for table in ["partial_chunk", "rival_partial", "finalize_job"] {
            _ = try query("DELETE FROM \(table) WHERE session = $1", [.int8(session.number)])
        }
        // From here on, the triggers hold the owner's row.
        _ = try query(
            """
            INSERT INTO file (
                id, owner, session_id, session, file_name, mime_type, byte_count, sha256,
                chunk_size, created_at, path, modified_at)
            SELECT file_id, owner, id, number, file_name, mime_type, file_size, final_sha256,
                chunk_size, $2, $3, $4
            FROM session WHERE number = $1
            """,
            [
                .int8(session.number), .time(now), .text(session.record.path),
                .int8(session.record.modified?.nanosecondsSinceEpoch),
            ])
        _ = try query(
            """
            UPDATE session SET state = 'completed', staging_key = NULL, staging_state = NULL,
                prefix_offset = NULL, prefix_state = NULL, revision = revision + 1
            WHERE number = $1
            """, [.int8(session.number)])
    }

    /// Whether any byte of a chunk was recorded.
    func hasBytes(_ session: SessionRow) throws -> Bool {
        try query(
            """
            SELECT 1 FROM chunk WHERE session = $1
            UNION ALL SELECT 1 FROM partial_chunk WHERE session = $1 LIMIT 1
            """, [.int8(session.number)]
        ).rowCount > 0
    }

    /// Returns the number of the session that has the chunk records of a stored file; nil when no
    /// file has the shape and digest, or its records are too many or incomplete. The file cannot be
    /// deleted before the transaction ends.
    func lockedChunkList(of shape: StoredFileShape, _ digest: SHA256Digest) throws -> Int64? {
        let found = try query(
            """
            SELECT file.session FROM file JOIN blob_scrub ON blob_scrub.sha256 = file.sha256
            WHERE file.owner = $1 AND file.byte_count = $2 AND file.deleted_at IS NULL
                AND file.chunk_size = $3 AND blob_scrub.damaged_at IS NULL
                AND greatest(verified_at, stored_at) >= $4 AND file.sha256 = $5
            ORDER BY file.created_at DESC, file.id DESC LIMIT 1 FOR SHARE OF file
            """, shape.values + [.digest(digest)])
        guard var row = found.firstRow else { return nil }
        let number = try row.integer()
        let sums = try query(
            "SELECT count(*), coalesce(sum(byte_count), 0)::bigint FROM chunk WHERE session = $1",
            [.int8(number)])
        guard var sum = sums.firstRow,
            shape.isWhole(chunkCount: Int(try sum.integer()), byteCount: try sum.integer())
        else { return nil }
        return number
    }

    /// Takes recorded finalizes whose lease has expired. Rows that another transaction has locked
    /// are skipped.
    func takeOverdueFinalizes(_ lease: WorkLease, limit: Int) throws -> [FinalizeJob] {
        try query(
            """
            WITH due AS (
                SELECT finalize_job.session
                FROM finalize_job JOIN session ON session.number = finalize_job.session
                WHERE finalize_job.lease_until <= $3
                ORDER BY finalize_job.lease_until LIMIT $4 FOR NO KEY UPDATE SKIP LOCKED),
            taken AS (
                UPDATE finalize_job SET holder = $1, lease_until = $2
                WHERE session IN (SELECT session FROM due) RETURNING session, expected_sha256)
            \(Self.keepTaken), taken.expected_sha256
            """,
            [
                .text(lease.holder), .time(lease.until), .time(lease.now), .int8(Int64(limit)),
            ]
        ).rows.map { row in
            var row = row
            return FinalizeJob(
                record: try SessionRow(&row).record, expected: try row.optionalDigest())
        }
    }

    /// Takes finalizing sessions that have no finalize job.
    func takeForgottenFinalizes(_ lease: WorkLease, limit: Int) throws -> [FinalizeJob] {
        try query(
            """
            WITH forgotten AS (
                SELECT number FROM session
                WHERE state = 'finalizing'
                    AND NOT EXISTS (
                        SELECT 1 FROM finalize_job WHERE finalize_job.session = session.number)
                LIMIT $3 FOR NO KEY UPDATE OF session SKIP LOCKED),
            taken AS (
                INSERT INTO finalize_job (session, holder, lease_until)
                SELECT number, $1, $2 FROM forgotten ON CONFLICT DO NOTHING RETURNING session)
            \(Self.keepTaken)
            """, [.text(lease.holder), .time(lease.until), .int8(Int64(limit))]
        ).rows.map { FinalizeJob(record: try SessionRow($0).record, expected: nil) }
    }

    /// Postpones the session's expiry until the end of its finalize lease.
    func keep(_ session: SessionRow, until time: Timestamp) throws {
        _ = try query(
            """
            UPDATE session SET expires_at = $2, revision = revision + 1
            WHERE number = $1 AND expires_at < $2
            """, [.int8(session.number), .time(time)])
    }

    /// Postpones the expiry of the taken sessions until $2, and returns them.
    private static let keepTaken = """
        UPDATE session SET expires_at = greatest(expires_at, $2), revision = revision + 1 FROM taken
        WHERE session.number = taken.session RETURNING \(SessionRow.columns)
        """
}
