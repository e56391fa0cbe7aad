internal import GRDB
internal import KedgeEngine
internal import KedgeModel

// The sums of owners are kept by triggers of the schema. Only this process writes, so they cannot
// change between a check and the end of its transaction.
extension Database {
    /// Returns the sums of an owner and the limits that apply.
    func quota(of owner: OwnerID, within limits: QuotaLimits) throws -> OwnerQuota {
        let found = try row(
            """
            SELECT max_stored_bytes, max_open_sessions, max_file_bytes, stored_bytes,
                reserved_bytes, open_sessions
            FROM owner WHERE owner = ?
            """, [owner.text])
        guard let found else { return OwnerQuota(limits: limits) }
        return OwnerQuota(
            limits: QuotaLimits(
                storedBytes: found["max_stored_bytes"] as Int64? ?? limits.storedBytes,
                openSessions: found["max_open_sessions"] as Int64? ?? limits.openSessions,
                fileBytes: found["max_file_bytes"] as Int64? ?? limits.fileBytes),
            storedBytes: found["stored_bytes"], reservedBytes: found["reserved_bytes"],
            openSessionCount: found["open_sessions"])
    }

    /// Reserves more for a session of unknown size whose bytes now reach to `end`.
    func reserve(
        upTo end: Int64, for session: SessionRow, within limits: QuotaLimits
    ) throws {
        guard session.record.fileSize == nil, end > session.reservation else { return }
        let quota = try quota(of: session.record.owner, within: limits)
        try run(
            "UPDATE session SET reserved_bytes = ? WHERE number = ?",
            [
                try quota.reservation(
                    covering: end, beyond: session.reservation,
                    upTo: session.record.maxByteCount),
                session.number,
            ])
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

    /// Returns the bytes that a new session of unknown size reserves at first: those of the session
    /// that it adopts, or the known sizes of its partial uploads. Nil for none.
    func firstReservation(
        of record: SessionRecord, adopting old: SessionRow?
    ) throws -> Int64? {
        guard record.fileSize == nil else { return nil }
        if let old { return old.reservedBytes }
        guard let sourceIDs = record.sourceIDs,
            let sums = try row(
                """
                SELECT sum(file_size) AS bytes FROM session
                WHERE id IN (SELECT value FROM json_each(?)) AND owner = ?
                """, [Self.list(sourceIDs), record.owner.text])
        else { return nil }
        return sums["bytes"] as Int64?
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

    /// Ends the reservations of the open partial uploads of a final upload, and lets them expire
    /// soon.
    func release(sourcesOf record: SessionRecord, at now: Timestamp) throws {
        guard let sourceIDs = record.sourceIDs else { return }
        try run(
            """
            UPDATE session SET reserved_bytes = 0, expires_at = min(expires_at, ?)
            WHERE id IN (SELECT value FROM json_each(?)) AND owner = ? AND state = 'open'
                AND number NOT IN (SELECT session FROM finalize_job)
            """,
            [
                now.advanced(by: FinalUpload.sourceLifetime).millisecondsSinceEpoch,
                Self.list(sourceIDs), record.owner.text,
            ])
    }

    /// Returns owners whose sums are not those of their sessions and files, in their order.
    func quotaDrifts(after owner: OwnerID?, limit: Int) throws -> [QuotaDrift] {
        try rows(
            """
            WITH actual AS (
                SELECT owner, sum(stored) AS stored, sum(reserved) AS reserved, sum(open) AS open
                FROM (\(Self.contributions)) GROUP BY owner),
            known AS (SELECT owner FROM owner UNION SELECT owner FROM actual)
            SELECT known.owner, owner.stored_bytes, owner.reserved_bytes, owner.open_sessions,
                coalesce(stored, 0) AS stored, coalesce(reserved, 0) AS reserved,
                coalesce(open, 0) AS open
            FROM known LEFT JOIN owner ON owner.owner = known.owner
                LEFT JOIN actual ON actual.owner = known.owner
            WHERE known.owner > ? AND (owner.stored_bytes IS NOT coalesce(stored, 0)
                OR owner.reserved_bytes IS NOT coalesce(reserved, 0)
                OR owner.open_sessions IS NOT coalesce(open, 0))
            ORDER BY known.owner LIMIT ?
            """, [owner?.text ?? "", limit]
        ).map { row in
            var kept: QuotaDrift.Sums?
            if let stored = row["stored_bytes"] as Int64? {
                kept = QuotaDrift.Sums(
                    storedBytes: stored, reservedBytes: row["reserved_bytes"],
                    openSessionCount: row["open_sessions"])
            }
            return QuotaDrift(
                owner: OwnerID(row["owner"]), kept: kept,
                actual: QuotaDrift.Sums(
                    storedBytes: row["stored"], reservedBytes: row["reserved"],
                    openSessionCount: row["open"]))
        }
    }

    /// Sets the sums of an owner to those of its sessions and files.
    func repairQuota(of owner: OwnerID) throws {
        try run(
            """
            INSERT INTO owner (owner, stored_bytes, reserved_bytes, open_sessions)
            SELECT ?1, coalesce(sum(stored), 0), coalesce(sum(reserved), 0),
                coalesce(sum(open), 0)
            FROM (\(Self.contributions)) WHERE owner = ?1
            ON CONFLICT (owner) DO UPDATE SET stored_bytes = excluded.stored_bytes,
                reserved_bytes = excluded.reserved_bytes, open_sessions = excluded.open_sessions
            """, [owner.text])
    }

    /// The contribution of each session and file to the sums of its owner, as in the triggers.
    private static let contributions = """
        SELECT owner, byte_count AS stored, 0 AS reserved, 0 AS open FROM file \
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
