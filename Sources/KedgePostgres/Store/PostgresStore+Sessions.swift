package import KedgeEngine
package import KedgeModel

extension PostgresStore {
    package func createSession(
        _ record: SessionRecord, idempotencyKey: IdempotencyKey?, adopting: SessionID?,
        in room: SessionRoom?
    ) async throws -> CreateOutcome {
        do {
            return try await insertSession(
                record, idempotencyKey: idempotencyKey, adopting: adopting, in: room)
        } catch MetadataError.quotaExceeded(let refusal) {
            return .quotaExceeded(refusal)
        }
    }

    /// Creates a session, or throws the refusal of a quota, so that nothing of it is written.
    ///
    /// Idempotent: a second run finds the session by its id or its key.
    private func insertSession(
        _ record: SessionRecord, idempotencyKey: IdempotencyKey?, adopting: SessionID?,
        in room: SessionRoom?
    ) async throws(MetadataError) -> CreateOutcome {
        // Of two creates with one key, the later one waits for the earlier one's row and then runs
        // again.
        try await write(of: record.owner, retryingDuplicatesOf: "idempotency_key_pkey") { db in
            if let link = room?.link { try db.lock(link) }
            if let key = idempotencyKey,
                let earlier = try db.earlierOutcome(of: key, for: record)
            {
                return earlier
            }
            if let link = room?.link, let outcome = try db.outcome(of: link, for: record) {
                return outcome
            }
            let old = try db.lockedSession(adopting, fitting: record)
            if let room, let sourceIDs = record.sourceIDs,
                try db.areUsedUp(sourceIDs, at: room.maxConcatenationCount)
            {
                return .sourceUsedUp
            }
            var ended: SessionID?
            if let room, old?.record.state != .open,
                try db.lacksRoom(for: record, of: room.maxOpenCount)
            {
                ended = try db.makeRoom(for: record.owner, besides: room.busy)
                if ended == nil { return .full }
            }
            if room != nil, let sourceIDs = record.sourceIDs { try db.use(sourceIDs) }
            let created = try db.insert(
                record, of: room?.client, isAdopting: adopting != nil, old)
            if let link = room?.link { try db.add(link, by: created.record.id) }
            if let key = idempotencyKey {
                _ = try db.query(
                    """
                    INSERT INTO idempotency_key (owner, key, fingerprint, session)
                    VALUES ($1, $2, $3, $4)
                    """,
                    [
                        .text(record.owner.text), .text(key.key), .text(key.fingerprint),
                        .int8(created.number),
                    ])
            }
            // After the insert, whose triggers have counted the session and locked the owner's row.
            // After the key, which shows that another node has just created the session.
            if let room, let reservation = created.newReservation {
                try db.requireRoom(
                    forNew: record, reserving: reservation, adopting: old, within: room.quota)
            }
            return ended.map { .createdInstead(created.record, of: $0) }
                ?? .created(created.record)
        }
    }

    package func progress(of id: SessionID, owner: OwnerID) async throws -> SessionProgress? {
        guard let all = try await changes(of: id, since: -1, ownedBy: owner) else { return nil }
        return SessionProgress(
            record: all.record, chunks: all.chunks, partials: all.partials ?? [],
            revision: all.revision)
    }

    package func unfinishedSessions(
        of owner: OwnerID, after cursor: SessionCursor?, limit: Int
    ) async throws -> [UnfinishedUpload] {
        try await single { db in
            let start = cursor ?? SessionCursor.beforeAll
            return try db.query(
                """
                SELECT \(SessionRow.columns),
                    CASE WHEN coalesce((SELECT max(idx) FROM chunk
                        WHERE chunk.session = session.number), 0) < $5
                    THEN coalesce((SELECT sum(byte_count) FROM chunk
                            WHERE chunk.session = session.number), 0)::bigint
                        + coalesce((SELECT sum(byte_count) FROM partial_chunk
                            WHERE partial_chunk.session = session.number), 0)::bigint END
                FROM session
                WHERE session.owner = $1 AND session.state IN ('open', 'finalizing')
                    AND (session.created_at, session.id) < ($2, $3)
                ORDER BY session.created_at DESC, session.id DESC LIMIT $4
                """,
                [
                    .text(owner.text), .time(start.createdAt), .text(start.id.text),
                    .int8(Int64(limit)), .int8(Int64(UnfinishedUpload.maxCountedChunkCount)),
                ]
            ).rows.map { row in
                var row = row
                let session = try SessionRow(&row)
                return UnfinishedUpload(
                    record: session.record, receivedByteCount: row.optionalInteger())
            }
        }
    }

    /// Idempotent: the same size changes nothing.
    package func declareSize(
        _ byteCount: Int64, of id: SessionID, within quota: QuotaLimits
    ) async throws {
        try await write { db in
            guard let session = try db.lockedSession(id) else { throw MetadataError.notFound }
            guard session.record.fileSize != byteCount else { return }
            guard session.record.fileSize == nil, session.record.state == .open else {
                throw MetadataError.wrongState(session.record.state)
            }
            var end = try db.query(
                "SELECT \(SessionRow.claimedEnd) FROM session WHERE number = $1",
                [.int8(session.number)]
            ).firstRow
            guard try end?.integer() ?? 0 <= byteCount else {
                throw MetadataError.failed("more bytes were received than the size declares")
            }
            _ = try db.query(
                """
                UPDATE session SET file_size = $2, reserved_bytes = NULL, revision = revision + 1
                WHERE number = $1
                """, [.int8(session.number), .int8(byteCount)])
            try db.requireRoom(for: byteCount, of: session, within: quota)
        }
    }

    /// Idempotent: a canceled session stays canceled.
    package func cancelSession(_ id: SessionID, owner: OwnerID) async throws {
        try await write(of: owner) { db in
            guard let session = try db.lockedSession(id), session.record.owner == owner else {
                throw MetadataError.notFound
            }
            guard session.record.state != .completed else {
                throw MetadataError.wrongState(.completed)
            }
            guard session.record.state != .canceled else { return }
            for table in ["chunk", "partial_chunk", "rival_partial", "finalize_job"] {
                _ = try db.query(
                    "DELETE FROM \(table) WHERE session = $1", [.int8(session.number)])
            }
            _ = try db.query(
                """
                UPDATE session SET state = 'canceled', staging_key = NULL, staging_state = NULL,
                    prefix_offset = NULL, prefix_state = NULL, file_id = NULL, final_sha256 = NULL,
                    revision = revision + 1, reset_revision = revision + 1
                WHERE number = $1
                """, [.int8(session.number)])
            try db.makeGarbage(ofBytesOf: session)
            try db.notify(id)
        }
    }

    package func openConcatenations(
        after: SessionID?, limit: Int
    ) async throws -> [SessionRecord] {
        try await single { db in
            try db.query(
                """
                SELECT \(SessionRow.columns) FROM session
                WHERE parts IS NOT NULL AND state = 'open' AND id > $1 ORDER BY id LIMIT $2
                """, [.text(after?.text ?? ""), .int8(Int64(limit))]
            ).rows.map { try SessionRow($0).record }
        }
    }

    package func unfinishedSessions() async throws -> [UnfinishedSession] {
        try await single { db in
            try db.query(
                """
                SELECT \(SessionRow.columns), \(SessionRow.claimedEnd) FROM session
                WHERE state IN ('open', 'finalizing') ORDER BY number
                """
            ).rows.map { row in
                var row = row
                return UnfinishedSession(
                    record: try SessionRow(&row).record, claimedEnd: try row.integer())
            }
        }
    }
}

extension SessionRow {
    /// Offset after the last byte of the chunks and partials.
    fileprivate static let claimedEnd = """
        greatest(\
        (SELECT idx * chunk.chunk_size + byte_count FROM chunk \
        WHERE chunk.session = session.number ORDER BY idx DESC LIMIT 1), \
        (SELECT idx * partial_chunk.chunk_size + byte_count FROM partial_chunk \
        WHERE partial_chunk.session = session.number ORDER BY idx DESC LIMIT 1), 0)
        """
}
