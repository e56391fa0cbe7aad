internal import KedgeEngine
internal import KedgeModel

// The sums of owners are kept by triggers of the schema, which lock the owner's row until the
// transaction ends. A transaction that has changed a session or file may therefore read the sums
// and decide.
extension PostgresConnection {
    /// Returns the sums of an owner and the limits that apply.
    ///
    /// - Parameter locks: Whether no other transaction may change them before this one ends.
    func quota(
        of owner: OwnerID, within limits: QuotaLimits, locks: Bool = false
    ) throws -> OwnerQuota {
        let found = try query(
            """
            SELECT max_stored_bytes, max_open_sessions, max_file_bytes, stored_bytes,
                reserved_bytes, open_sessions
            FROM owner WHERE owner = $1 \(locks ? "FOR NO KEY UPDATE" : "")
            """, [.text(owner.text)]
        ).firstRow
        guard var row = found else { return OwnerQuota(limits: limits) }
        let own = QuotaLimits(
            storedBytes: row.optionalInteger() ?? limits.storedBytes,
            openSessions: row.optionalInteger() ?? limits.openSessions,
            fileBytes: row.optionalInteger() ?? limits.fileBytes)
        return OwnerQuota(
            limits: own, storedBytes: try row.integer(), reservedBytes: try row.integer(),
            openSessionCount: try row.integer())
    }

    /// Locks the rows of owners in the order of their text. For a transaction that changes the
    /// sessions of several owners: without a common order, two of them can wait for each other.
    func lock(_ owners: Set<OwnerID>) throws {
        guard owners.count > 1 else { return }
        _ = try query(
            "SELECT 1 FROM owner WHERE owner = ANY ($1) ORDER BY owner FOR NO KEY UPDATE",
            [.texts(owners.map(\.text))])
    }

    /// Reserves more for a session of unknown size whose bytes now reach to `end`.
    func reserve(
        upTo end: Int64, for session: SessionRow, within limits: QuotaLimits
    ) throws {
        guard session.record.fileSize == nil, end > session.reservation else { return }
        let quota = try quota(of: session.record.owner, within: limits, locks: true)
        let reserved = try quota.reservation(
            covering: end, beyond: session.reservation, upTo: session.record.maxByteCount)
        _ = try query(
            "UPDATE session SET reserved_bytes = $2 WHERE number = $1",
            [.int8(session.number), .int8(reserved)])
    }

    /// Checks the sums of the owner after its session has got the size as its reservation.
    func requireRoom(
        for byteCount: Int64, of session: SessionRow, within limits: QuotaLimits
    ) throws {
        let growth = byteCount - session.reservation
        guard growth > 0 else { return }
        try quota(of: session.record.owner, within: limits)
            .requireRoom(forFileOf: byteCount, growth: growth)
    }

    /// Checks the sums of the owner after a session was added to them.
    ///
    /// - Parameter old: The session whose bytes it has adopted, as it was before.
    func requireRoom(
        forNew record: SessionRecord, reserving byteCount: Int64, adopting old: SessionRow?,
        within limits: QuotaLimits
    ) throws {
        let quota = try quota(of: record.owner, within: limits)
        if let old, old.record.state == .open {
            try quota.requireRoom(forFileOf: byteCount, growth: byteCount - old.reservation)
        } else {
            try quota.requireRoom(forNewSessionOf: byteCount)
        }
    }

    /// Returns the bytes that a new session of unknown size reserves at first: those of the session
    /// that it adopts, or the known sizes of its partial uploads. Nil for none.
    func firstReservation(
        of record: SessionRecord, adopting old: SessionRow?
    ) throws -> Int64? {
        guard record.fileSize == nil else { return nil }
        if let old { return old.reservedBytes }
        guard let sourceIDs = record.sourceIDs else { return nil }
        var row = try query(
            "SELECT sum(file_size)::bigint FROM session WHERE id = ANY ($1) AND owner = $2",
            [.texts(sourceIDs.map(\.text)), .text(record.owner.text)]
        ).firstRow
        return row?.optionalInteger()
    }

    /// Ends the reservations of the open partial uploads of a final upload, and lets them expire
    /// soon. Their rows are locked here, in a common order, before the row of the owner.
    func release(sourcesOf record: SessionRecord, at now: Timestamp) throws {
        guard let sourceIDs = record.sourceIDs else { return }
        let ids = PostgresValue.texts(sourceIDs.map(\.text))
        _ = try query(
            "SELECT number FROM session WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", [ids])
        _ = try query(
            """
            UPDATE session SET reserved_bytes = 0, expires_at = least(expires_at, $2),
                revision = revision + 1
            WHERE id = ANY ($1) AND owner = $3 AND state = 'open'
                AND NOT EXISTS (SELECT 1 FROM finalize_job WHERE session = number)
            """,
            [
                ids, .time(now.advanced(by: FinalUpload.sourceLifetime)),
                .text(record.owner.text),
            ])
    }
}

// The check of the sums, and their repair.
extension PostgresConnection {
    /// Returns owners whose sums are not those of their sessions and files, in their order. One
    /// statement sees one state of the database, also while nodes run.
    func quotaDrifts(after owner: OwnerID?, limit: Int) throws -> [QuotaDrift] {
        // Reads all rows, hence the long timeout.
        try query(
            """
            WITH actual AS (
                SELECT owner, sum(stored)::bigint AS stored, sum(reserved)::bigint AS reserved,
                    sum(sessions)::bigint AS sessions
                FROM (\(Self.contributions)) AS contribution GROUP BY owner)
            SELECT owner, coalesce(stored, 0), coalesce(reserved, 0), coalesce(sessions, 0),
                stored_bytes, reserved_bytes, open_sessions
            FROM owner FULL JOIN actual USING (owner)
            WHERE owner > $1 AND (stored_bytes IS DISTINCT FROM coalesce(stored, 0)
                OR reserved_bytes IS DISTINCT FROM coalesce(reserved, 0)
                OR open_sessions IS DISTINCT FROM coalesce(sessions, 0))
            ORDER BY owner LIMIT $2
            """, [.text(owner?.text ?? ""), .int8(Int64(limit))], timeout: .seconds(3600)
        ).rows.map { row in
            var row = row
            let owner = OwnerID(try row.text())
            let actual = QuotaDrift.Sums(
                storedBytes: try row.integer(), reservedBytes: try row.integer(),
                openSessionCount: try row.integer())
            let (stored, reserved, sessions) =
                (row.optionalInteger(), row.optionalInteger(), row.optionalInteger())
            var kept: QuotaDrift.Sums?
            if let stored, let reserved, let sessions {
                kept = QuotaDrift.Sums(
                    storedBytes: stored, reservedBytes: reserved, openSessionCount: sessions)
            }
            return QuotaDrift(owner: owner, kept: kept, actual: actual)
        }
    }

    /// Sets the sums of an owner to those of its sessions and files.
    ///
    /// A transaction that changes these locks the owner's row after its change. So it has ended
    /// when the sums are read here, or it adds its change to the new sums afterwards.
    func repairQuota(of owner: OwnerID) throws {
        _ = try query(
            "INSERT INTO owner (owner) VALUES ($1) ON CONFLICT DO NOTHING", [.text(owner.text)])
        _ = try query(
            "SELECT 1 FROM owner WHERE owner = $1 FOR NO KEY UPDATE", [.text(owner.text)])
        _ = try query(
            """
            UPDATE owner SET stored_bytes = sums.stored, reserved_bytes = sums.reserved,
                open_sessions = sums.sessions
            FROM (
                SELECT coalesce(sum(stored), 0)::bigint AS stored,
                    coalesce(sum(reserved), 0)::bigint AS reserved,
                    coalesce(sum(sessions), 0)::bigint AS sessions
                FROM (\(Self.contributions)) AS contribution WHERE owner = $1) AS sums
            WHERE owner.owner = $1
            """, [.text(owner.text)])
    }

    /// The contribution of each session and file to the sums of its owner, as in the triggers.
    private static let contributions = """
        SELECT owner, byte_count AS stored, 0::bigint AS reserved, 0::bigint AS sessions FROM file \
        WHERE deleted_at IS NULL \
        UNION ALL \
        SELECT owner, 0, coalesce(reserved_bytes, file_size, 0), 1 FROM session \
        WHERE state IN ('open', 'finalizing')
        """
}

extension SessionRow {
    /// Bytes reserved for the session while it is open or finalizing.
    var reservation: Int64 { reservedBytes ?? record.fileSize ?? 0 }

    /// Returns the offset after the first bytes of a chunk.
    func end(of index: Int, _ byteCount: Int64) -> Int64 {
        Int64(index) * record.chunkSize + byteCount
    }
}
