internal import Foundation
internal import GRDB
internal import KedgeEngine
internal import KedgeModel

extension Database {
    /// Whether a file or a finalizing session needs the blob.
    func isNeeded(_ digest: SHA256Digest) throws -> Bool {
        try exists(
            """
            SELECT 1 FROM file WHERE sha256 = ?1 AND deleted_at IS NULL
            UNION ALL SELECT 1 FROM session WHERE final_sha256 = ?1 AND state = 'finalizing'
            LIMIT 1
            """, [digest.data])
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
        if try !isNeeded(digest) { try add(.blob(digest)) }
    }

    /// Deletes the row of a blob that no file needs. Called like ``makeGarbage(unlessNeeded:)``.
    func dropBlob(unlessNeeded digest: SHA256Digest) throws {
        let isNeeded = try exists(
            "SELECT 1 FROM file WHERE sha256 = ? AND deleted_at IS NULL", [digest.data])
        guard !isNeeded,
            let row = try row("SELECT staging_key FROM blob WHERE sha256 = ?", [digest.data])
        else { return }
        try run("DELETE FROM blob WHERE sha256 = ?", [digest.data])
        try add(.staging(StagingKey(row["staging_key"] as String)))
    }

    func forget(_ garbage: Garbage) throws {
        try run(
            "DELETE FROM garbage WHERE kind = ? AND key = ?", [garbage.kind, garbage.key])
    }

    func add(_ garbage: Garbage) throws {
        try run(
            """
            INSERT INTO garbage (kind, key, state) VALUES (?, ?, ?)
            ON CONFLICT DO UPDATE SET lease_until = 0, state = coalesce(excluded.state, state)
            """,
            [garbage.kind, garbage.key, garbage.state])
    }
}

extension Garbage {
    init(_ row: Row) throws {
        try self.init(kind: row["kind"], key: row["key"], state: row["state"])
    }
}
