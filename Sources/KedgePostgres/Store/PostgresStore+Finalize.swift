package import KedgeEngine
package import KedgeModel

extension PostgresStore {
    /// Idempotent: a second run returns the stored values of the first.
    package func beginFinalize(
        of id: SessionID, digest: SHA256Digest, fileID: FileID, within quota: QuotaLimits
    ) async throws -> SessionRecord {
        try await write { db in
            let session = try db.lockedSession(id, in: .open, .finalizing, .completed)
            guard session.record.state == .open else { return session.record }
            guard try db.isComplete(session) else {
                throw MetadataError.failed("session \(id) does not have all its chunks")
            }
            let updated = try db.query(
                """
                UPDATE session SET state = 'finalizing', final_sha256 = $2, file_id = $3,
                    reserved_bytes = NULL, revision = revision + 1
                WHERE number = $1 RETURNING \(SessionRow.columns)
                """, [.int8(session.number), .digest(digest), .text(fileID.text)])
            try db.requireRoom(for: session.record.fileSize ?? 0, of: session, within: quota)
            guard let row = updated.firstRow else { throw MetadataError.notFound }
            try db.notify(id)
            return try SessionRow(row).record
        }
    }

    /// Idempotent: a second run returns the file.
    package func completeFinalize(
        of id: SessionID, at now: Timestamp, location: String?, keepUntil: Timestamp
    ) async throws -> FileRecord {
        let found = try await single { db in try db.session(id)?.record.owner }
        guard let owner = found else { throw MetadataError.notFound }
        return try await write(of: owner) { db in
            let session = try db.lockedSession(id, in: .finalizing, .completed)
            guard let fileID = session.record.fileID else { throw MetadataError.notFound }
            if session.record.state == .finalizing {
                guard try db.isComplete(session) else {
                    throw MetadataError.failed("session \(id) does not have all its chunks")
                }
                try db.makeFile(of: session, at: now)
                try db.keepBlob(of: session, at: location, now: now, keepUntil: keepUntil)
                try db.notify(id)
            }
            guard let file = try db.file(fileID) else { throw MetadataError.notFound }
            return file
        }
    }

    /// Idempotent: a second run returns the file.
    package func completeFinalize(
        of id: SessionID, from stored: StoredFileShape, digest: SHA256Digest, fileID: FileID,
        at now: Timestamp
    ) async throws -> FileRecord? {
        try await write(of: stored.owner) { db in
            let session = try db.lockedSession(id, in: .open, .completed)
            if session.record.state == .completed {
                guard session.record.finalDigest == digest else { return nil }
                return try session.record.fileID.flatMap { try db.file($0) }
            }
            // A session whose reservation ended with a final upload has to send its bytes: then
            // the start of its finalize checks the quota.
            guard session.record.canBecome(stored, digest),
                session.reservation >= stored.byteCount, try !db.hasBytes(session),
                let source = try db.lockedChunkList(of: stored, digest)
            else { return nil }
            _ = try db.query(
                """
                INSERT INTO chunk (session, idx, byte_count, chunk_size, sha256, revision)
                SELECT $1, idx, byte_count, chunk_size, sha256, $3 FROM chunk WHERE session = $2
                """,
                [.int8(session.number), .int8(source), .int8(session.revision + 1)])
            // Nodes that know the session as empty read it again.
            _ = try db.query(
                """
                UPDATE session SET state = 'finalizing', final_sha256 = $2, file_id = $3,
                    revision = revision + 1, reset_revision = revision + 1
                WHERE number = $1
                """, [.int8(session.number), .digest(digest), .text(fileID.text)])
            try db.makeFile(of: session, at: now)
            try db.makeGarbage(ofBytesOf: session)
            // A second file depends on these bytes now.
            _ = try db.query(
                """
                UPDATE blob_scrub SET due_at = least(due_at, $2)
                WHERE sha256 = $1 AND coalesce(verified_at, 0) < $3
                """,
                [
                    .digest(digest), .time(now),
                    .time(now.advanced(by: .zero - StoredFileShape.scrubAge)),
                ])
            try db.notify(id)
            return try db.file(fileID)
        }
    }

    package func finalizingSessions() async throws -> [SessionRecord] {
        try await single { db in
            try db.query(
                """
                SELECT \(SessionRow.columns) FROM session WHERE state = 'finalizing'
                ORDER BY number
                """
            ).rows.map { try SessionRow($0).record }
        }
    }

    /// Idempotent: an open session stays open.
    package func reopen(_ id: SessionID) async throws {
        try await write { db in
            let session = try db.lockedSession(id, in: .open, .finalizing)
            // An open session may have a finalize job, too.
            _ = try db.query(
                "DELETE FROM finalize_job WHERE session = $1", [.int8(session.number)])
            guard session.record.state == .finalizing else { return }
            _ = try db.query(
                """
                UPDATE session SET state = 'open', file_id = NULL, final_sha256 = NULL,
                    revision = revision + 1, reset_revision = revision + 1
                WHERE number = $1
                """, [.int8(session.number)])
            // The blob may exist although this session does not need it any more.
            if let digest = session.record.finalDigest { try db.makeGarbage(unlessNeeded: digest) }
            try db.notify(id)
        }
    }

    /// Idempotent: the same holder keeps the job.
    package func takeFinalize(
        of id: SessionID, expecting expected: SHA256Digest?, lease: WorkLease
    ) async throws -> Bool {
        try await write { db in
            let session = try db.lockedSession(id, in: .open, .finalizing)
            let taken = try db.query(
                """
                INSERT INTO finalize_job (session, expected_sha256, holder, lease_until)
                VALUES ($1, $2, $3, $4)
                ON CONFLICT (session) DO UPDATE SET
                    expected_sha256 =
                        coalesce(excluded.expected_sha256, finalize_job.expected_sha256),
                    holder = excluded.holder, lease_until = excluded.lease_until
                WHERE finalize_job.holder = excluded.holder OR finalize_job.lease_until <= $5
                RETURNING 1
                """,
                [
                    .int8(session.number), .digest(expected), .text(lease.holder),
                    .time(lease.until), .time(lease.now),
                ])
            guard taken.rowCount > 0 else { return false }
            try db.keep(session, until: lease.until)
            return true
        }
    }

    /// Idempotent: sets the same lease.
    package func renewFinalize(of id: SessionID, lease: WorkLease) async throws {
        try await write { db in
            guard let session = try db.lockedSession(id) else { return }
            let renewed = try db.query(
                """
                UPDATE finalize_job SET lease_until = $3 WHERE session = $1 AND holder = $2
                RETURNING 1
                """, [.int8(session.number), .text(lease.holder), .time(lease.until)])
            if renewed.rowCount > 0 { try db.keep(session, until: lease.until) }
        }
    }

    /// Idempotent: a missing job is not an error.
    package func discardFinalize(of id: SessionID, by lease: WorkLease) async throws {
        try await write { db in
            _ = try db.query(
                """
                DELETE FROM finalize_job
                WHERE session = (SELECT number FROM session WHERE id = $1)
                    AND (holder = $2 OR lease_until <= $3)
                """, [.text(id.text), .text(lease.holder), .time(lease.now)])
        }
    }

    /// A second run after an unacknowledged commit takes other jobs. Those of the first run are
    /// taken again when their lease expires: later, but not lost.
    package func takeAbandonedFinalizes(
        lease: WorkLease, limit: Int
    ) async throws -> [FinalizeJob] {
        try await write { db in
            let promised = try db.takeOverdueFinalizes(lease, limit: limit)
            return try promised + db.takeForgottenFinalizes(lease, limit: limit - promised.count)
        }
    }
}
