internal import Foundation
internal import GRDB
package import KedgeEngine
package import KedgeModel

extension SQLiteStore {
    package func beginFinalize(
        of id: SessionID, digest: SHA256Digest, fileID: FileID, within quota: QuotaLimits
    ) async throws -> SessionRecord {
        try await commits.write { db in
            let session = try db.session(id, in: .open, .finalizing, .completed)
            guard session.record.state == .open else { return session.record }
            guard try db.isComplete(session) else {
                throw MetadataError.failed("session \(id) does not have all its chunks")
            }
            try db.run(
                """
                UPDATE session SET state = 'finalizing', final_sha256 = ?, file_id = ?,
                    reserved_bytes = NULL
                WHERE number = ?
                """, [digest.data, fileID.text, session.number])
            try db.requireRoom(for: session.record.fileSize ?? 0, of: session, within: quota)
            return try db.knownSession(id).record
        }
    }

    package func completeFinalize(
        of id: SessionID, at now: Timestamp, location: String?, keepUntil: Timestamp
    ) async throws -> FileRecord {
        try await commits.write { db in
            let session = try db.session(id, in: .finalizing, .completed)
            guard let fileID = session.record.fileID else { throw MetadataError.notFound }
            if session.record.state == .finalizing {
                guard try db.isComplete(session) else {
                    throw MetadataError.failed("session \(id) does not have all its chunks")
                }
                try db.makeFile(of: session, at: now)
                if let location {
                    try db.keepBlob(of: session, at: location, keepUntil: keepUntil)
                }
                if let digest = session.record.finalDigest, let size = session.record.fileSize {
                    try db.beginScrub(of: digest, byteCount: size, at: now)
                }
            }
            guard let file = try db.file(fileID) else { throw MetadataError.notFound }
            return file
        }
    }

    package func completeFinalize(
        of id: SessionID, from stored: StoredFileShape, digest: SHA256Digest, fileID: FileID,
        at now: Timestamp
    ) async throws -> FileRecord? {
        try await commits.write { db in
            let session = try db.session(id, in: .open, .completed)
            if session.record.state == .completed {
                guard session.record.finalDigest == digest else { return nil }
                return try session.record.fileID.flatMap { try db.file($0) }
            }
            // A session whose reservation ended with a final upload has to send its bytes: then
            // the start of its finalize checks the quota.
            guard session.record.canBecome(stored, digest),
                session.reservation >= stored.byteCount,
                try db.claimedEnd(of: session) == 0,
                let source = try db.chunkList(of: stored, digest)
            else { return nil }
            try db.run(
                """
                INSERT INTO chunk (session, idx, byte_count, chunk_size, sha256)
                SELECT ?, idx, byte_count, chunk_size, sha256 FROM chunk WHERE session = ?
                """, [session.number, source])
            try db.run(
                """
                UPDATE session SET state = 'finalizing', final_sha256 = ?, file_id = ?
                WHERE number = ?
                """, [digest.data, fileID.text, session.number])
            try db.makeFile(of: session, at: now)
            try db.makeGarbage(ofBytesOf: session)
            // A second file depends on these bytes now.
            let age = now.advanced(by: .zero - StoredFileShape.scrubAge)
            try db.run(
                """
                UPDATE blob_scrub SET due_at = min(due_at, ?)
                WHERE sha256 = ? AND coalesce(verified_at, 0) < ?
                """,
                [now.millisecondsSinceEpoch, digest.data, age.millisecondsSinceEpoch])
            return try db.file(fileID)
        }
    }

    package func finalizingSessions() async throws -> [SessionRecord] {
        try await commits.read { db in
            try db.rows(
                """
                SELECT \(SessionRow.columns) FROM session WHERE state = 'finalizing'
                ORDER BY number
                """, []
            ).map { try SessionRow($0).record }
        }
    }

    package func reopen(_ id: SessionID) async throws {
        try await commits.write { db in
            let session = try db.session(id, in: .open, .finalizing)
            // An open session may have a finalize job, too.
            try db.discardFinalize(of: session)
            guard session.record.state == .finalizing else { return }
            try db.run(
                """
                UPDATE session SET state = 'open', file_id = NULL, final_sha256 = NULL
                WHERE number = ?
                """, [session.number])
            // The blob may exist although this session does not need it any more.
            if let digest = session.record.finalDigest { try db.makeGarbage(unlessNeeded: digest) }
        }
    }
}

extension Database {
    /// Creates the file of a finalizing session and completes the session.
    fileprivate func makeFile(of session: SessionRow, at now: Timestamp) throws {
        try release(sourcesOf: session.record, at: now)
        try run(
            """
            INSERT INTO file (
                id, owner, session_id, session, file_name, mime_type, byte_count, sha256,
                chunk_size, created_at, path, modified_at)
            SELECT file_id, owner, id, number, file_name, mime_type, file_size, final_sha256,
                chunk_size, ?, ?, ?
            FROM session WHERE number = ?
            """,
            [
                now.millisecondsSinceEpoch, session.record.path,
                session.record.modified?.nanosecondsSinceEpoch, session.number,
            ])
        try run(
            """
            UPDATE session SET state = 'completed', staging_key = NULL, staging_state = NULL,
                prefix_offset = NULL, prefix_state = NULL
            WHERE number = ?
            """, [session.number])
        try discardFinalize(of: session)
        try deletePartials(of: session)
    }

    /// Records the location of the file's blob. An older blob of the same bytes is superseded. The
    /// rest of the staging area becomes garbage.
    fileprivate func keepBlob(
        of session: SessionRow, at location: String, keepUntil: Timestamp
    ) throws {
        let record = session.record
        if let digest = record.finalDigest, let size = record.fileSize,
            let old = try row(
                "SELECT staging_key, location FROM blob WHERE sha256 = ?", [digest.data])
        {
            try add(
                SupersededBlob(
                    digest: digest, byteCount: size,
                    key: StagingKey(old["staging_key"] as String), location: old["location"],
                    keepUntil: keepUntil))
            // The area becomes garbage again when the superseded copy is released.
            try forget(.staging(StagingKey(old["staging_key"] as String)))
        }
        try run(
            """
            INSERT INTO blob (sha256, byte_count, staging_key, location) VALUES (?, ?, ?, ?)
            ON CONFLICT (sha256) DO UPDATE SET staging_key = excluded.staging_key,
                location = excluded.location
            """, [record.finalDigest?.data, record.fileSize, record.stagingKey.text, location])
        try add(.staging(record.stagingKey, state: session.stagingState))
    }

    /// Returns the number of the session that has the chunk records of a stored file; nil when no
    /// file has the shape and digest, or its records are too many or incomplete.
    fileprivate func chunkList(of shape: StoredFileShape, _ digest: SHA256Digest) throws -> Int64? {
        let row = try row(
            """
            SELECT file.session FROM file JOIN blob_scrub ON blob_scrub.sha256 = file.sha256
            WHERE file.owner = ?1 AND file.byte_count = ?2 AND file.deleted_at IS NULL
                AND file.chunk_size = ?3 AND blob_scrub.damaged_at IS NULL
                AND max(coalesce(verified_at, 0), coalesce(stored_at, 0)) >= ?4
                AND file.sha256 = ?5
            ORDER BY file.created_at DESC, file.id DESC LIMIT 1
            """,
            [
                shape.owner.text, shape.byteCount, shape.chunkSize,
                shape.verifiedSince.millisecondsSinceEpoch, digest.data,
            ])
        guard let number = row?["session"] as Int64?,
            let sums = try self.row(
                "SELECT count(*) AS chunks, sum(byte_count) AS bytes FROM chunk WHERE session = ?",
                [number]),
            shape.isWhole(chunkCount: sums["chunks"], byteCount: sums["bytes"])
        else { return nil }
        return number
    }

    func discardFinalize(of session: SessionRow) throws {
        try run("DELETE FROM finalize_job WHERE session = ?", [session.number])
    }
}
