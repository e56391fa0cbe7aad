internal import Foundation
internal import GRDB
internal import KedgeEngine
internal import KedgeModel

extension Database {
    /// True while a file or a finalizing session needs the blob.
    func isNeeded(_ digest: SHA256Digest) throws -> Bool {
        try exists(
            """
            SELECT 1 FROM file WHERE sha256 = ?1 AND deleted_at IS NULL
            UNION ALL SELECT 1 FROM session WHERE final_sha256 = ?1 AND state = 'finalizing'
            LIMIT 1
            """, [digest.data])
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
        if try !isNeeded(digest) { try add(.blob(digest)) }
    }

    /// Lets go of a blob that has a row, unless a file needs it. Called as ``makeGarbage(unlessNeeded:)`` is.
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
