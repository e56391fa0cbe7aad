internal import GRDB
internal import KedgeEngine
internal import KedgeModel

extension Database {
    /// Returns the session, or nil.
    func session(_ id: SessionID) throws -> SessionRow? {
        try row("SELECT \(SessionRow.columns) FROM session WHERE id = ?", [id.text])
            .map { try SessionRow($0) }
    }

    /// Returns the session, or nil. Another owner's session costs no more than an unknown one.
    func session(_ id: SessionID, of owner: OwnerID) throws -> SessionRow? {
        try row(
            "SELECT \(SessionRow.columns) FROM session WHERE id = ? AND owner = ?",
            [id.text, owner.text]
        ).map { try SessionRow($0) }
    }

    /// Returns the session; throws `notFound` when there is none.
    func knownSession(_ id: SessionID) throws -> SessionRow {
        guard let session = try session(id) else { throw MetadataError.notFound }
        return session
    }

    /// Returns the session. Throws `notFound` when there is none, `wrongState` for another state.
    func session(_ id: SessionID, in states: SessionState...) throws -> SessionRow {
        let session = try knownSession(id)
        guard states.contains(session.record.state) else {
            throw MetadataError.wrongState(session.record.state)
        }
        return session
    }

    /// Inserts the record unchanged. Returns the row's number.
    ///
    /// - Parameters:
    ///   - client: The client's network.
    ///   - isEmpty: Whether the session counts as one without a byte.
    ///   - reservedBytes: Bytes to reserve; nil for the file size.
    func insert(
        _ record: SessionRecord, of client: String?, isEmpty: Bool, reserving reservedBytes: Int64?
    ) throws -> Int64 {
        try run(
            """
            INSERT INTO session (
                id, owner, staging_key, file_name, mime_type, file_size, chunk_size,
                declared_sha256, metadata, state, created_at, expires_at,
                prefix_offset, prefix_state, file_id, final_sha256, parts, client, empty_since,
                max_byte_count, min_byte_count, created_by, link_id, reserved_bytes)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                record.id.text, record.owner.text, record.stagingKey.text, record.fileName,
                record.mimeType, record.fileSize, record.chunkSize, record.declaredDigest?.data,
                try MetadataText.encode(record.metadata), record.state.rawValue,
                record.createdAt.millisecondsSinceEpoch, record.expiresAt.millisecondsSinceEpoch,
                record.prefix?.offset, record.prefix?.state.data, record.fileID?.text,
                record.finalDigest?.data, record.sourceIDsText, client,
                isEmpty ? record.createdAt.millisecondsSinceEpoch : nil,
                record.maxByteCount, record.minByteCount, record.createdBy, record.linkID,
                reservedBytes,
            ])
        return lastInsertedRowID
    }

    /// Records the touch that accompanies a commit. The prefix is only replaced by a longer one.
    func touch(_ session: SessionRow, _ touch: SessionUpdate) throws {
        try run(
            """
            UPDATE session SET expires_at = ?1,
                prefix_state = CASE WHEN ?2 > coalesce(prefix_offset, -1) THEN ?3
                    ELSE prefix_state END,
                prefix_offset = CASE WHEN ?2 > coalesce(prefix_offset, -1) THEN ?2
                    ELSE prefix_offset END
            WHERE number = ?4
            """,
            [
                touch.expiresAt.millisecondsSinceEpoch, touch.prefix?.offset,
                touch.prefix?.state.data, session.number,
            ])
    }

    /// Records the state of the whole-file hash, unless the recorded one covers as many bytes.
    func save(_ prefix: HashCheckpoint, of session: SessionRow) throws {
        try run(
            """
            UPDATE session SET prefix_offset = ?1, prefix_state = ?2
            WHERE number = ?3 AND coalesce(prefix_offset, -1) < ?1
            """, [prefix.offset, prefix.state.data, session.number])
    }

    /// Returns the offset after the last byte of the chunks and partials.
    func claimedEnd(of session: SessionRow) throws -> Int64 {
        let ends = try ["chunk", "partial_chunk"].map { table in
            try row(
                """
                SELECT idx * chunk_size + byte_count FROM \(table) WHERE session = ?
                ORDER BY idx DESC LIMIT 1
                """, [session.number])?[0] as Int64? ?? 0
        }
        return ends.max() ?? 0
    }
}
