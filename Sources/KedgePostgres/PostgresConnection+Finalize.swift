internal import KedgeEngine
internal import KedgeModel

extension PostgresConnection {
    /// Makes the blob of a finalizing session known, unless there is one of these bytes already,
    /// and leaves everything else of the staging area to the sweep: pieces, lost uploads, and the
    /// object itself when another one is the blob.
    func keepBlob(of session: SessionRow, at location: String) throws {
        // The update changes nothing, but locks the row that is there: deleting its last file
        // waits.
        _ = try query(
            """
            INSERT INTO blob (sha256, byte_count, staging_key, location) VALUES ($1, $2, $3, $4)
            ON CONFLICT (sha256) DO UPDATE SET sha256 = excluded.sha256
            """,
            [
                .digest(session.record.finalDigest), .int8(session.record.fileSize),
                .text(session.record.stagingKey.text), .text(location),
            ])
        try add(.staging(session.record.stagingKey, state: session.stagingState))
    }

    /// Forgets where the bytes were; the sweep removes what is left there. Readers of files that have them are
    /// given the new place as soon as this transaction ends.
    func dropBlob(at location: String, of digest: SHA256Digest?) throws {
        let dropped = try query(
            "DELETE FROM blob WHERE sha256 = $1 AND location = $2 RETURNING staging_key",
            [.digest(digest), .text(location)])
        guard var row = dropped.firstRow else { return }
        try add(.staging(StagingKey(try row.text()), state: nil))
    }

    /// Makes the file of a finalizing session and completes the session.
    func makeFile(of session: SessionRow, at now: Timestamp) throws {
        _ = try query(
            """
            INSERT INTO file (
                id, owner, session_id, session, file_name, mime_type, byte_count, sha256,
                chunk_size, created_at)
            SELECT file_id, owner, id, number, file_name, mime_type, file_size, final_sha256,
                chunk_size, $2
            FROM session WHERE number = $1
            """, [.int8(session.number), .time(now)])
        for table in ["partial_chunk", "rival_partial", "finalize_job"] {
            _ = try query("DELETE FROM \(table) WHERE session = $1", [.int8(session.number)])
        }
        _ = try query(
            """
            UPDATE session SET state = 'completed', staging_key = NULL, staging_state = NULL,
                prefix_offset = NULL, prefix_state = NULL, revision = revision + 1
            WHERE number = $1
            """, [.int8(session.number)])
    }

    /// Takes promised finalizes whose lease is over. Those whose session or promise another
    /// transaction holds are left to it.
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

    /// Takes sessions that are finalizing although nobody has the work.
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

    /// Lets a session not expire before the lease of its finalize.
    func keep(_ session: SessionRow, until time: Timestamp) throws {
        _ = try query(
            """
            UPDATE session SET expires_at = $2, revision = revision + 1
            WHERE number = $1 AND expires_at < $2
            """, [.int8(session.number), .time(time)])
    }

    /// The same for those that were taken until $2; answers them.
    private static let keepTaken = """
        UPDATE session SET expires_at = greatest(expires_at, $2), revision = revision + 1 FROM taken
        WHERE session.number = taken.session RETURNING \(SessionRow.columns)
        """
}
