internal import KedgeEngine
internal import KedgeModel

// The uses of links by sessions.
extension PostgresConnection {
    /// First of the two numbers of the lock of a link; the other one is a hash of its id. Locks of
    /// one number are apart from these.
    private static let linkLock = 0x6C69_6E6B

    /// Makes the creates of one link wait for each other until the transaction ends. Taken before
    /// all other locks. Links with the same hash only wait for each other, too.
    func lock(_ link: LinkUse) throws {
        _ = try query(
            "SELECT pg_advisory_xact_lock($1, hashtext($2))::text",
            [.int4(Self.linkLock), .text(link.linkID)])
    }

    /// Returns the outcome of a create by a locked link without a use left; nil when it has one.
    ///
    /// Other transactions may end the session that has the use between two of these statements,
    /// which each see a later state. So the answer that depends on both is looked up again.
    func outcome(of link: LinkUse, for record: SessionRecord) throws -> CreateOutcome? {
        // Several uploads by a link for several sessions may have one name and size.
        guard link.maxUses == 1 else {
            return try useCount(of: link, besides: record.id) >= link.maxUses ? .linkUsed : nil
        }
        for _ in 0..<3 {
            guard try useCount(of: link, besides: record.id) > 0 else { return nil }
            if let earlier = try earlierSession(of: link, for: record) { return .replayed(earlier) }
        }
        return .linkUsed
    }

    /// Counts the uses of a link. One by the same session is that of our own first run, whose
    /// commit was not acknowledged.
    private func useCount(of link: LinkUse, besides id: SessionID) throws -> Int64 {
        var row = try query(
            """
            SELECT count(*) FROM link_use LEFT JOIN session ON session.id = session_id
            WHERE link_use.link_id = $1 AND session_id <> $2
                AND coalesce(session.state NOT IN ('canceled', 'expired', 'failed'), true)
            """, [.text(link.linkID), .text(id.text)]
        ).firstRow
        return try row?.integer() ?? 0
    }

    /// Returns the session that the same request by the link has made.
    private func earlierSession(
        of link: LinkUse, for record: SessionRecord
    ) throws -> SessionRecord? {
        try query(
            """
            SELECT \(SessionRow.columns) FROM link_use JOIN session ON session.id = session_id
            WHERE link_use.link_id = $1 AND fingerprint = $2 AND session.owner = $3
                AND (session.state IN ('open', 'finalizing')
                    OR session.state = 'completed' AND EXISTS (
                        SELECT 1 FROM file
                        WHERE file.id = session.file_id AND file.created_at > $4))
            LIMIT 1
            """,
            [
                .text(link.linkID), .text(link.fingerprint), .text(record.owner.text),
                .time(LinkUse.repetitionStart(at: record.createdAt)),
            ]
        ).firstRow.map { try SessionRow($0).record }
    }

    /// Records that the session is a use of the link. A row of our own first run stays.
    func add(_ link: LinkUse, by session: SessionID) throws {
        _ = try query(
            """
            INSERT INTO link_use (session_id, link_id, fingerprint, expires_at)
            VALUES ($1, $2, $3, $4) ON CONFLICT (session_id) DO NOTHING
            """,
            [
                .text(session.text), .text(link.linkID), .text(link.fingerprint),
                .time(link.expiresAt),
            ])
    }

    /// Deletes the rows of links and keys that ended before the time. Rows that another node
    /// deletes are skipped.
    func forgetLinks(endedBefore end: Timestamp, limit: Int) throws {
        for (table, key, column) in LinkRows.all {
            _ = try query(
                """
                DELETE FROM \(table) WHERE \(key) IN (
                    SELECT \(key) FROM \(table) WHERE \(column) < $1 LIMIT $2
                    FOR UPDATE SKIP LOCKED)
                """, [.time(end), .int8(Int64(limit))])
        }
    }
}
