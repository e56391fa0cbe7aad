internal import GRDB
internal import KedgeEngine
internal import KedgeModel

// The uses of links by sessions.
extension Database {
    /// Returns the outcome of a create by a link without a use left; nil when it has one.
    func outcome(of link: LinkUse, for record: SessionRecord) throws -> CreateOutcome? {
        let count: Int =
            try row(
                """
                SELECT count(*) FROM link_use LEFT JOIN session ON session.id = session_id
                WHERE link_use.link_id = ?
                    AND coalesce(session.state NOT IN ('canceled', 'expired', 'failed'), 1)
                """, [link.linkID])?[0] ?? 0
        guard count >= link.maxUses else { return nil }
        // Several uploads by a link for several sessions may have one name and size.
        guard link.maxUses == 1 else { return .linkUsed }
        let earlier = try row(
            """
            SELECT \(SessionRow.columns) FROM link_use JOIN session ON session.id = session_id
            WHERE link_use.link_id = ?1 AND fingerprint = ?2 AND session.owner = ?3
                AND (session.state IN ('open', 'finalizing')
                    OR session.state = 'completed' AND EXISTS (
                        SELECT 1 FROM file
                        WHERE file.id = session.file_id AND file.created_at > ?4))
            """,
            [
                link.linkID, link.fingerprint, record.owner.text,
                LinkUse.repetitionStart(at: record.createdAt).millisecondsSinceEpoch,
            ])
        guard let earlier else { return .linkUsed }
        return .replayed(try SessionRow(earlier).record)
    }

    /// Records that the session is a use of the link.
    func add(_ link: LinkUse, by session: SessionID) throws {
        try run(
            """
            INSERT INTO link_use (session_id, link_id, fingerprint, expires_at)
            VALUES (?, ?, ?, ?)
            """,
            [
                session.text, link.linkID, link.fingerprint,
                link.expiresAt.millisecondsSinceEpoch,
            ])
    }

    /// Deletes the rows of links and keys that ended before the time.
    func forgetLinks(endedBefore end: Timestamp, limit: Int) throws {
        for (table, key, column) in LinkRows.all {
            try run(
                """
                DELETE FROM \(table) WHERE \(key) IN (
                    SELECT \(key) FROM \(table) WHERE \(column) < ? LIMIT ?)
                """, [end.millisecondsSinceEpoch, limit])
        }
    }
}
