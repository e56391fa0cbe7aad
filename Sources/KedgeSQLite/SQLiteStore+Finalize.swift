internal import Foundation
internal import GRDB
package import KedgeEngine
package import KedgeModel

extension SQLiteStore {
    package func beginFinalize(
        of id: SessionID, digest: SHA256Digest, fileID: FileID
    ) async throws -> SessionRecord {
        try await commits.write { db in
            let session = try db.session(id, in: .open, .finalizing, .completed)
            guard session.record.state == .open else { return session.record }
            guard try db.isComplete(session) else {
                throw MetadataError.failed("session \(id) does not have all its chunks")
            }
            try db.run(
                """
                UPDATE session SET state = 'finalizing', final_sha256 = ?, file_id = ?
                WHERE number = ?
                """, [digest.data, fileID.text, session.number])
            return try db.knownSession(id).record
        }
    }

    package func completeFinalize(
        of id: SessionID, at now: Timestamp, location: String?, replacing damaged: String?
    ) async throws -> FileRecord {
        try await commits.write { db in
            let session = try db.session(id, in: .finalizing, .completed)
            guard let fileID = session.record.fileID else { throw MetadataError.notFound }
            if session.record.state == .finalizing {
                guard try db.isComplete(session) else {
                    throw MetadataError.failed("session \(id) does not have all its chunks")
                }
                if let damaged { try db.dropBlob(at: damaged, of: session.record.finalDigest) }
                try db.makeFile(of: session, at: now, location: location)
            }
            guard let file = try db.file(fileID) else { throw MetadataError.notFound }
            return file
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
            // The promise of an open session ends here, too.
            try db.dropFinalize(of: session)
            guard session.record.state == .finalizing else { return }
            try db.run(
                """
                UPDATE session SET state = 'open', file_id = NULL, final_sha256 = NULL
                WHERE number = ?
                """, [session.number])
            // The blob may be there although this session does not need it any more.
            if let digest = session.record.finalDigest { try db.makeGarbage(unlessNeeded: digest) }
        }
    }
}

extension Database {
    /// Makes the file of a finalizing session and completes the session.
    fileprivate func makeFile(
        of session: SessionRow, at now: Timestamp, location: String?
    ) throws {
        try run(
            """
            INSERT INTO file (
                id, owner, session_id, session, file_name, mime_type, byte_count, sha256,
                chunk_size, created_at)
            SELECT file_id, owner, id, number, file_name, mime_type, file_size, final_sha256,
                chunk_size, ?
            FROM session WHERE number = ?
            """, [now.millisecondsSinceEpoch, session.number])
        try run(
            """
            UPDATE session SET state = 'completed', staging_key = NULL, staging_state = NULL,
                prefix_offset = NULL, prefix_state = NULL
            WHERE number = ?
            """, [session.number])
        if let location { try keepBlob(of: session, at: location) }
        try dropFinalize(of: session)
        try deletePartials(of: session)
    }

    /// Remembers where the file's blob is, unless the same bytes are somewhere already. What is left of the
    /// staging area, perhaps the blob itself, becomes garbage.
    private func keepBlob(of session: SessionRow, at location: String) throws {
        let record = session.record
        try run(
            """
            INSERT INTO blob (sha256, byte_count, staging_key, location) VALUES (?, ?, ?, ?)
            ON CONFLICT DO NOTHING
            """, [record.finalDigest?.data, record.fileSize, record.stagingKey.text, location])
        try add(.staging(record.stagingKey, state: session.stagingState))
    }

    /// Forgets where the bytes were; the sweep removes what is left there.
    fileprivate func dropBlob(at location: String, of digest: SHA256Digest?) throws {
        let row = try row(
            "SELECT staging_key FROM blob WHERE sha256 = ? AND location = ?",
            [digest?.data, location])
        guard let row else { return }
        try run("DELETE FROM blob WHERE sha256 = ?", [digest?.data])
        try add(.staging(StagingKey(row["staging_key"] as String)))
    }

    func dropFinalize(of session: SessionRow) throws {
        try run("DELETE FROM finalize_job WHERE session = ?", [session.number])
    }
}
