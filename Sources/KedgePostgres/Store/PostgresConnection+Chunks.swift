internal import KedgeEngine
internal import KedgeModel

extension PostgresConnection {
    /// Deletes the rows of chunks, every partial, the prefix and the finalize job. The caller holds
    /// the lock on the session's row.
    func invalidate(_ indexes: [Int], of session: SessionRow) throws {
        _ = try query(
            "DELETE FROM chunk WHERE session = $1 AND idx = ANY ($2)",
            [.int8(session.number), .int4s(indexes)])
        for table in ["partial_chunk", "rival_partial", "finalize_job"] {
            _ = try query("DELETE FROM \(table) WHERE session = $1", [.int8(session.number)])
        }
        _ = try query(
            """
            UPDATE session SET prefix_offset = NULL, prefix_state = NULL,
                -- Without chunks the recorded multipart upload is useless; the next chunk begins
                -- a new one.
                staging_state = CASE WHEN EXISTS (SELECT 1 FROM chunk WHERE session = $1)
                    THEN staging_state END,
                revision = revision + 1, reset_revision = revision + 1
            WHERE number = $1
            """, [.int8(session.number)])
        try notify(session.record.id)
    }

    /// Adds the missing chunks, deletes their partials and touches the session, in one round trip.
    /// The caller holds the lock on the session's row, so no other transaction changes its chunks.
    ///
    /// - Parameter chunks: With distinct indexes.
    /// - Returns: Digests of the chunks that were stored before.
    /// - Throws: `writerReplaced` when another writer holds the touch's lease.
    func insert(
        _ chunks: [CommittedChunk], of session: SessionRow, _ touch: SessionUpdate
    ) throws -> [Int: SHA256Digest] {
        let result = try query(
            """
            WITH \(Self.writer), \(Self.touched),
            stored AS (
                SELECT idx, sha256 FROM chunk WHERE session = $1 AND idx = ANY ($8)),
            added AS (
                INSERT INTO chunk (session, idx, byte_count, chunk_size, sha256, location, revision)
                SELECT $1, new.idx, new.byte_count, $12, new.sha256, new.location, $2
                FROM unnest($8, $9, $10, $11) AS new (idx, byte_count, sha256, location)
                ON CONFLICT DO NOTHING),
            gone AS (DELETE FROM partial_chunk WHERE session = $1 AND idx = ANY ($8)),
            beaten AS (DELETE FROM rival_partial WHERE session = $1 AND idx = ANY ($8))
            SELECT idx, sha256, (SELECT token FROM writer) FROM (VALUES (1)) AS one (row)
                LEFT JOIN stored ON true
            """,
            session.touchValues(touch) + [
                .int4s(chunks.map(\.index)), .int8s(chunks.map(\.byteCount)),
                .byteas(chunks.map(\.digest.bytes)), .texts(chunks.map(\.location)),
                .int8(session.record.chunkSize),
            ])
        var stored: [Int: SHA256Digest] = [:]
        for var row in result.rows {
            if let index = row.optionalInteger() {
                stored[Int(index)] = try row.digest()
            } else {
                _ = row.optionalBytes()
            }
            try touch.check(storedToken: row.optionalText())
        }
        return stored
    }

    /// Records the partial unless its chunk is committed, and touches the session.
    ///
    /// - Throws: `writerReplaced` as above, and when another writer saved this partial after the
    ///   touch's writer got the chunk. The latter covers a lost lease.
    func save(_ partial: PartialRecord, of session: SessionRow, _ touch: SessionUpdate) throws {
        // A rival has no column for doubt: it is never in doubt.
        let (doubt, newDoubt, setDoubt) =
            partial.isRival
            ? ("", "", "") : (", in_doubt", ", $16", ", in_doubt = excluded.in_doubt")
        let result = try query(
            """
            WITH \(Self.writer), \(Self.touched),
            saved AS (
                INSERT INTO \(partial.isRival ? "rival_partial" : "partial_chunk") AS kept (
                    session, idx, byte_count, chunk_size, hash_state, declared_sha256, location,
                    writer, revision\(doubt))
                SELECT $1, $8, $9, $10, $11, $12, $13, $14, $2\(newDoubt)
                WHERE NOT EXISTS (SELECT 1 FROM chunk WHERE session = $1 AND idx = $8)
                ON CONFLICT (session, idx) DO UPDATE SET
                    byte_count = excluded.byte_count, hash_state = excluded.hash_state,
                    declared_sha256 = excluded.declared_sha256, location = excluded.location,
                    writer = excluded.writer, revision = excluded.revision\(setDoubt)
                WHERE \(Self.isCurrent("$14", knowing: "$15"))
                RETURNING idx)
            SELECT (SELECT token FROM writer),
                EXISTS (SELECT 1 FROM saved)
                    OR EXISTS (SELECT 1 FROM chunk WHERE session = $1 AND idx = $8)
            """,
            session.touchValues(touch) + [
                .int4(partial.index), .int8(partial.byteCount), .int8(session.record.chunkSize),
                .bytea(partial.hashState), .digest(partial.declaredDigest),
                .text(partial.location), .text(touch.writer?.text),
                .int8(touch.writer?.knownRevision),
            ] + (partial.isRival ? [] : [.bool(partial.isInDoubt)]))
        var row = result.firstRow
        try touch.check(storedToken: row?.optionalText())
        guard try row?.bool() == true else { throw MetadataError.writerReplaced }
    }

    /// Deletes a partial or a rival, and raises the session's revision for other nodes.
    ///
    /// - Throws: `writerReplaced`, as ``save(_:of:_:)`` does.
    func discardPartial(
        _ index: Int, isRival: Bool, of session: SessionRow, by writer: FencingToken?
    ) throws {
        let table = isRival ? "rival_partial" : "partial_chunk"
        var row = try query(
            """
            WITH gone AS (
                DELETE FROM \(table) AS kept WHERE session = $1 AND idx = $2
                    AND \(Self.isCurrent("$3", knowing: "$4")) RETURNING session),
            touched AS (
                UPDATE session SET revision = revision + 1
                WHERE number IN (SELECT session FROM gone))
            SELECT EXISTS (SELECT 1 FROM gone) OR NOT EXISTS (
                SELECT 1 FROM \(table) WHERE session = $1 AND idx = $2)
            """,
            [
                .int8(session.number), .int4(index), .text(writer?.text),
                .int8(writer?.knownRevision),
            ]
        ).firstRow
        guard try row?.bool() == true else { throw MetadataError.writerReplaced }
    }

    /// A condition: no other writer has changed the row `kept` since the revision that this token
    /// knows. Without a token there is only one writer.
    private static func isCurrent(_ token: String, knowing revision: String) -> String {
        "(\(token) IS NULL OR kept.writer = \(token) OR kept.revision <= \(revision))"
    }

    /// Throws `writerReplaced` when another writer holds the chunk; otherwise locks its lease.
    func check(_ writer: FencingToken, of id: SessionID) throws {
        var row = try query(
            "SELECT token FROM writer_lease WHERE session_id = $1 AND idx = $2 FOR SHARE",
            [.text(id.text), .int4(writer.index)]
        ).firstRow
        guard let stored = row?.optionalText(), stored != writer.text else { return }
        throw MetadataError.writerReplaced
    }

    /// Reads the fencing token of the touch's chunk. The lock delays a takeover until this
    /// transaction ends; the next writer then sees its changes.
    private static let writer = """
        writer AS (
            SELECT token FROM writer_lease WHERE session_id = $6 AND idx = $7 FOR SHARE)
        """

    /// Writes the touch. The prefix is only replaced by a longer one.
    private static let touched = """
        touched AS (
            UPDATE session SET revision = $2, expires_at = $3,
                prefix_offset = CASE WHEN $4 > coalesce(prefix_offset, -1)
                    THEN $4 ELSE prefix_offset END,
                prefix_state = CASE WHEN $4 > coalesce(prefix_offset, -1)
                    THEN $5 ELSE prefix_state END
            WHERE number = $1)
        """
}

extension SessionUpdate {
    /// Throws `writerReplaced` when the lease's row has another token.
    ///
    /// Without a row the lease was released, or lost in a crash of the database. Then the first
    /// commit of a chunk wins, and a partial's own row decides; see ``FencingToken``.
    fileprivate func check(storedToken: String?) throws {
        guard let writer, let storedToken, storedToken != writer.text else { return }
        throw MetadataError.writerReplaced
    }
}

extension SessionRow {
    /// Parameters $1 to $7 of a statement that touches the session.
    fileprivate func touchValues(_ touch: SessionUpdate) -> [PostgresValue] {
        let prefix = isHashGood(asOf: touch.revision) ? touch.prefix : nil
        return [
            .int8(number), .int8(revision + 1), .time(touch.expiresAt), .int8(prefix?.offset),
            .bytea(prefix?.state), .text(touch.writer == nil ? nil : touch.id.text),
            .int4(touch.writer?.index ?? 0),
        ]
    }

    /// Whether no chunk was invalidated since the revision. An older hash may cover invalidated
    /// bytes.
    func isHashGood(asOf known: Int64?) -> Bool { known.map { $0 >= resetRevision } ?? true }

    /// Throws `failed` unless the chunk fits the session's layout.
    func check(_ chunk: CommittedChunk) throws {
        // A layout without a size has no short last chunk yet; the schema checks the rest.
        let layout = record.layout
        guard let range = layout.range(ofChunk: chunk.index),
            layout.fileSize == nil || range.end - range.start == chunk.byteCount
        else {
            throw MetadataError.failed(
                "chunk \(chunk.index) of \(chunk.byteCount) bytes does not fit the session")
        }
    }

    /// Throws `failed` unless the bytes are a proper part of one of the session's chunks.
    func check(_ partial: PartialRecord) throws {
        guard let range = record.layout.range(ofChunk: partial.index),
            partial.byteCount < range.end - range.start
        else {
            throw MetadataError.failed(
                "\(partial.byteCount) bytes are not a part of chunk \(partial.index)")
        }
    }
}
