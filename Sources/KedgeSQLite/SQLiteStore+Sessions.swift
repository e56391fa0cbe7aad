internal import Foundation
internal import GRDB
package import KedgeEngine
package import KedgeModel

extension SQLiteStore {
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
    private func insertSession(
        _ record: SessionRecord, idempotencyKey: IdempotencyKey?, adopting: SessionID?,
        in room: SessionRoom?
    ) async throws(MetadataError) -> CreateOutcome {
        try await commits.write { db in
            if let key = idempotencyKey,
                let earlier = try db.earlierOutcome(of: key, owner: record.owner)
            {
                return earlier
            }
            if let link = room?.link, let outcome = try db.outcome(of: link, for: record) {
                return outcome
            }
            let old = try db.session(adopting, fitting: record)
            if let room, let sourceIDs = record.sourceIDs,
                try db.areUsedUp(sourceIDs, at: room.maxConcatenationCount)
            {
                return .sourceUsedUp
            }
            var ended: SessionID?
            if let room, old?.record.state != .open, try db.openCount() >= room.maxOpenCount {
                ended = try db.makeRoom(besides: room.busy)
                if ended == nil { return .full }
            }
            if room != nil, let sourceIDs = record.sourceIDs { try db.use(sourceIDs) }
            let created = try db.insert(record, of: room?.client, adopting: old)
            if let link = room?.link { try db.add(link, by: created.record.id) }
            if let key = idempotencyKey {
                try db.run(
                    """
                    INSERT INTO idempotency_key (owner, key, fingerprint, session)
                    VALUES (?, ?, ?, ?)
                    """,
                    [record.owner.text, key.key, key.fingerprint, created.number])
            }
            // After the insert, whose triggers have counted the session.
            if let room {
                try db.requireRoom(
                    forNew: record, reserving: created.reservation, adopting: old,
                    within: room.quota)
            }
            return ended.map { .createdInstead(created.record, of: $0) }
                ?? .created(created.record)
        }
    }

    package func progress(of id: SessionID, owner: OwnerID) async throws -> SessionProgress? {
        try await commits.read { db in
            guard let session = try db.session(id, of: owner) else { return nil }
            return SessionProgress(
                record: session.record, chunks: try db.chunks(of: session),
                partials: try db.partials(of: session))
        }
    }

    package func unfinishedSessions(
        of owner: OwnerID, after cursor: SessionCursor?, limit: Int
    ) async throws -> [UnfinishedUpload] {
        try await commits.read { db in
            let start = cursor ?? SessionCursor.beforeAll
            return try db.rows(
                """
                SELECT \(SessionRow.columns),
                    CASE WHEN coalesce((SELECT max(idx) FROM chunk
                        WHERE chunk.session = session.number), 0) < ?5
                    THEN coalesce((SELECT sum(byte_count) FROM chunk
                            WHERE chunk.session = session.number), 0)
                        + coalesce((SELECT sum(byte_count) FROM partial_chunk
                            WHERE partial_chunk.session = session.number), 0) END AS received
                FROM session
                WHERE session.owner = ?1 AND session.state IN ('open', 'finalizing')
                    AND (session.created_at, session.id) < (?2, ?3)
                ORDER BY session.created_at DESC, session.id DESC LIMIT ?4
                """,
                [
                    owner.text, start.createdAt.millisecondsSinceEpoch, start.id.text, limit,
                    UnfinishedUpload.maxCountedChunkCount,
                ]
            ).map { row in
                UnfinishedUpload(
                    record: try SessionRow(row).record, receivedByteCount: row["received"])
            }
        }
    }

    package func declareSize(
        _ byteCount: Int64, of id: SessionID, within quota: QuotaLimits
    ) async throws {
        try await commits.write { db in
            let session = try db.knownSession(id)
            guard session.record.fileSize != byteCount else { return }
            guard session.record.fileSize == nil, session.record.state == .open else {
                throw MetadataError.wrongState(session.record.state)
            }
            guard try db.claimedEnd(of: session) <= byteCount else {
                throw MetadataError.failed("more bytes were received than the size declares")
            }
            try db.run(
                "UPDATE session SET file_size = ?, reserved_bytes = NULL WHERE number = ?",
                [byteCount, session.number])
            try db.requireRoom(for: byteCount, of: session, within: quota)
        }
    }

    package func cancelSession(_ id: SessionID, owner: OwnerID) async throws {
        try await commits.write { db in
            let session = try db.knownSession(id)
            guard session.record.owner == owner else { throw MetadataError.notFound }
            guard session.record.state != .completed else {
                throw MetadataError.wrongState(.completed)
            }
            guard session.record.state != .canceled else { return }
            try db.run("DELETE FROM chunk WHERE session = ?", [session.number])
            try db.deletePartials(of: session)
            try db.run(
                """
                UPDATE session SET state = 'canceled', staging_key = NULL, staging_state = NULL,
                    prefix_offset = NULL, prefix_state = NULL, file_id = NULL, final_sha256 = NULL
                WHERE number = ?
                """, [session.number])
            try db.run("DELETE FROM finalize_job WHERE session = ?", [session.number])
            try db.makeGarbage(ofBytesOf: session)
        }
    }

    package func openConcatenations(
        after: SessionID?, limit: Int
    ) async throws -> [SessionRecord] {
        try await commits.read { db in
            try db.rows(
                """
                SELECT \(SessionRow.columns) FROM session
                WHERE parts IS NOT NULL AND state = 'open' AND id > ? ORDER BY id LIMIT ?
                """, [after?.text ?? "", limit]
            ).map { try SessionRow($0).record }
        }
    }

    package func unfinishedSessions() async throws -> [UnfinishedSession] {
        try await commits.read { db in
            try db.rows(
                """
                SELECT \(SessionRow.columns) FROM session WHERE state IN ('open', 'finalizing')
                ORDER BY number
                """, []
            ).map { row in
                let session = try SessionRow(row)
                return UnfinishedSession(
                    record: session.record, claimedEnd: try db.claimedEnd(of: session))
            }
        }
    }
}

extension Database {
    /// Returns the outcome of an earlier create with this key; nil when there was none.
    fileprivate func earlierOutcome(
        of key: IdempotencyKey, owner: OwnerID
    ) throws -> CreateOutcome? {
        let row = try row(
            """
            SELECT fingerprint, \(SessionRow.columns)
            FROM idempotency_key JOIN session ON session.number = idempotency_key.session
            WHERE idempotency_key.owner = ? AND idempotency_key.key = ?
            """, [owner.text, key.key])
        guard let row else { return nil }
        guard row["fingerprint"] == key.fingerprint else { return .keyConflict }
        return .replayed(try SessionRow(row).record)
    }

    /// Returns the session to adopt, if the new one can adopt it.
    fileprivate func session(
        _ id: SessionID?, fitting record: SessionRecord
    ) throws -> SessionRow? {
        guard let id, let old = try session(id), old.canBeAdopted(by: record) else { return nil }
        return old
    }

    /// Whether one of the sessions has reached the limit of final uploads that use it.
    fileprivate func areUsedUp(_ sourceIDs: [SessionID], at limit: Int) throws -> Bool {
        try exists(
            """
            SELECT 1 FROM session
            WHERE id IN (SELECT value FROM json_each(?)) AND composition_count >= ? LIMIT 1
            """, [Self.list(sourceIDs), limit])
    }

    /// Counts one more final upload for each of the sessions.
    fileprivate func use(_ sourceIDs: [SessionID]) throws {
        try run(
            """
            UPDATE session SET composition_count = composition_count + 1
            WHERE id IN (SELECT value FROM json_each(?))
            """, [Self.list(sourceIDs)])
    }

    /// Returns the identifiers as JSON. They only contain hexadecimal digits.
    static func list(_ ids: some Sequence<SessionID>) -> String {
        "[" + ids.map { "\"\($0.text)\"" }.joined(separator: ",") + "]"
    }

    fileprivate func openCount() throws -> Int {
        try row("SELECT count(*) FROM session WHERE state = 'open'", [])?[0] ?? 0
    }

    /// Deletes the oldest empty session of the client that has the most of them.
    ///
    /// - Returns: Nil when every open session has bytes or a writer.
    fileprivate func makeRoom(besides busy: Set<SessionID>) throws -> SessionID? {
        // Without INDEXED BY, the planner sorts all open sessions, which takes three times as long.
        let row = try row(
            """
            SELECT \(SessionRow.columns) FROM session WHERE number = (
                SELECT min(number) FROM session INDEXED BY empty_session
                WHERE empty_since IS NOT NULL AND state = 'open'
                    AND number NOT IN (
                        SELECT number FROM session WHERE id IN (SELECT value FROM json_each(?)))
                    AND NOT EXISTS (SELECT 1 FROM finalize_job WHERE session = number)
                GROUP BY client ORDER BY count(*) DESC, min(number) LIMIT 1)
            """, [Self.list(busy)])
        guard let row else { return nil }
        let session = try SessionRow(row)
        // The idempotency key is deleted with it.
        try run("DELETE FROM session WHERE number = ?", [session.number])
        try makeGarbage(ofBytesOf: session)
        return session.record.id
    }

    /// Inserts the session, with the bytes of the adopted one.
    fileprivate func insert(
        _ record: SessionRecord, of client: String?, adopting old: SessionRow?
    ) throws -> (number: Int64, record: SessionRecord, reservation: Int64) {
        let reserved = try firstReservation(of: record, adopting: old)
        let reservation = reserved ?? record.fileSize ?? 0
        guard let old else {
            let number = try insert(
                record, of: client, isEmpty: record.sourceIDs == nil, reserving: reserved)
            return (number, record, reservation)
        }
        // The old row releases its key first: two sessions never share a staging key.
        try run(
            """
            UPDATE session SET state = 'expired', staging_key = NULL, staging_state = NULL,
                prefix_offset = NULL, prefix_state = NULL
            WHERE number = ?
            """, [old.number])
        try discardFinalize(of: old)
        var record = record
        record.stagingKey = old.record.stagingKey
        record.prefix = old.record.prefix
        let number = try insert(record, of: client, isEmpty: false, reserving: reserved)
        try run(
            "UPDATE session SET staging_state = ? WHERE number = ?", [old.stagingState, number])
        for table in ["chunk", "partial_chunk", "rival_partial"] {
            try run("UPDATE \(table) SET session = ? WHERE session = ?", [number, old.number])
        }
        return (number, record, reservation)
    }
}

extension SessionRow {
    /// Whether the new session can adopt the bytes received for this one.
    fileprivate func canBeAdopted(by new: SessionRecord) -> Bool {
        hasStaging && record.isAdoptable(by: new)
    }
}
