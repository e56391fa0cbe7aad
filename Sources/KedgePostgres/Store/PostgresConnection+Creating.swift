internal import KedgeEngine
internal import KedgeModel

extension PostgresConnection {
    /// Returns the outcome of an earlier create with this key; nil when there was none.
    func earlierOutcome(of key: IdempotencyKey, for record: SessionRecord) throws -> CreateOutcome?
    {
        let found = try query(
            """
            SELECT fingerprint, \(SessionRow.columns)
            FROM idempotency_key JOIN session ON session.number = idempotency_key.session
            WHERE idempotency_key.owner = $1 AND idempotency_key.key = $2
            """, [.text(record.owner.text), .text(key.key)]
        ).firstRow
        guard var row = found else { return nil }
        guard try row.text() == key.fingerprint else { return .keyConflict }
        let earlier = try SessionRow(&row).record
        // An equal id is that of our own first run, whose commit was not acknowledged.
        return earlier.id == record.id ? .created(earlier) : .replayed(earlier)
    }

    /// Locks and returns the session to adopt, if the new one can adopt it.
    func lockedSession(_ id: SessionID?, fitting record: SessionRecord) throws -> SessionRow? {
        guard let id, let old = try lockedSession(id), old.canBeAdopted(by: record) else {
            return nil
        }
        return old
    }

    /// Inserts the session, with the bytes of the adopted one.
    ///
    /// - Parameters:
    ///   - client: The client's network.
    ///   - isAdopting: Whether a session to adopt was named, even if it cannot be adopted.
    func insert(
        _ record: SessionRecord, of client: String?, isAdopting: Bool, _ old: SessionRow?
    ) throws -> InsertedSession {
        guard let old else { return try insertOrFind(record, of: client, isAdopting: isAdopting) }
        let reserved = try firstReservation(of: record, adopting: old)
        try releaseBlob(of: old)
        var record = record
        record.stagingKey = old.record.stagingKey
        record.prefix = old.record.prefix
        // Revision 1, so that a node that knows the session as created, empty at revision 0, reads
        // the chunks.
        let adopted = try insert(
            record, of: client, isEmpty: false, stagingState: old.stagingState, revision: 1,
            reserving: reserved)
        guard let number = adopted else {
            throw MetadataError.failed("the id of a session is in use")
        }
        _ = try query(
            "UPDATE chunk SET session = $1, revision = 1 WHERE session = $2",
            [.int8(number), .int8(old.number)])
        for table in ["partial_chunk", "rival_partial"] {
            // The new session has no writer yet.
            _ = try query(
                "UPDATE \(table) SET session = $1, writer = NULL, revision = 0 WHERE session = $2",
                [.int8(number), .int8(old.number)])
        }
        return InsertedSession(
            number: number, record: record, newReservation: reserved ?? record.fileSize ?? 0)
    }

    /// Takes the bytes from a session: two sessions never share a staging key.
    private func releaseBlob(of old: SessionRow) throws {
        _ = try query(
            """
            UPDATE session SET state = 'expired', staging_key = NULL, staging_state = NULL,
                prefix_offset = NULL, prefix_state = NULL,
                revision = revision + 1, reset_revision = revision + 1
            WHERE number = $1
            """, [.int8(old.number)])
        _ = try query("DELETE FROM finalize_job WHERE session = $1", [.int8(old.number)])
        try notify(old.record.id)
    }

    private func insertOrFind(
        _ record: SessionRecord, of client: String?, isAdopting: Bool
    ) throws -> InsertedSession {
        let reserved = try firstReservation(of: record, adopting: nil)
        let inserted = try insert(
            record, of: client, isEmpty: record.sourceIDs == nil, stagingState: nil, revision: 0,
            reserving: reserved)
        if let inserted {
            return InsertedSession(
                number: inserted, record: record,
                newReservation: reserved ?? record.fileSize ?? 0)
        }
        guard let stored = try session(record.id),
            stored.isFirstRun(of: record, isAdopting: isAdopting)
        else { throw MetadataError.failed("the id of a session is in use") }
        return InsertedSession(number: stored.number, record: stored.record)
    }

    /// Inserts the record unchanged. Returns the row's number, or nil when the id is taken.
    private func insert(
        _ record: SessionRecord, of client: String?, isEmpty: Bool, stagingState: String?,
        revision: Int64, reserving reservedBytes: Int64?
    ) throws -> Int64? {
        var row = try query(
            """
            INSERT INTO session (
                id, owner, staging_key, file_name, mime_type, file_size, chunk_size,
                declared_sha256, metadata, state, created_at, expires_at,
                prefix_offset, prefix_state, file_id, final_sha256, staging_state, revision,
                parts, client, empty_since, max_byte_count, min_byte_count, created_by, link_id,
                reserved_bytes)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
                $18, $19, $20, $21, $22, $23, $24, $25, $26)
            ON CONFLICT (id) DO NOTHING RETURNING number
            """,
            [
                .text(record.id.text), .text(record.owner.text), .text(record.stagingKey.text),
                .text(record.fileName), .text(record.mimeType), .int8(record.fileSize),
                .int8(record.chunkSize), .digest(record.declaredDigest),
                .text(try MetadataText.encode(record.metadata)), .text(record.state.rawValue),
                .time(record.createdAt), .time(record.expiresAt), .int8(record.prefix?.offset),
                .bytea(record.prefix?.state), .text(record.fileID?.text),
                .digest(record.finalDigest), .text(stagingState), .int8(revision),
                .text(record.sourceIDsText), .text(client),
                .int8(isEmpty ? record.createdAt.millisecondsSinceEpoch : nil),
                .int8(record.maxByteCount), .int8(record.minByteCount), .text(record.createdBy),
                .text(record.linkID), .int8(reservedBytes),
            ]
        ).firstRow
        return try row?.integer()
    }
}

/// A session that was created, now or by an earlier run of the same call.
struct InsertedSession {
    let number: Int64
    let record: SessionRecord
    /// The bytes reserved by this run; nil when an earlier one has created the session.
    var newReservation: Int64?
}

extension SessionRow {
    /// Whether the new session can adopt the bytes received for this one.
    fileprivate func canBeAdopted(by new: SessionRecord) -> Bool {
        hasStaging && record.isAdoptable(by: new)
    }

    /// Whether this session was created by a first run of the same call whose commit was not
    /// acknowledged. Ids are random, so the same id with the same values is no coincidence.
    fileprivate func isFirstRun(of new: SessionRecord, isAdopting: Bool) -> Bool {
        record.owner == new.owner && record.createdAt == new.createdAt
            && record.fileName == new.fileName && record.chunkSize == new.chunkSize
            && (isAdopting || record.stagingKey == new.stagingKey)
    }
}
