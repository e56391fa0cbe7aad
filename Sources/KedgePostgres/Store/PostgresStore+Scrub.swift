package import KedgeEngine
package import KedgeModel

// A writing operation may run a second time after a commit that was not acknowledged. The comments
// state why that is harmless.
extension PostgresStore {
    /// Idempotent: the row exists already, and another generation does no harm.
    package func supersede(_ blob: SupersededBlob, at now: Timestamp) async throws -> Bool {
        try await write { db in
            let isSpare =
                try db.query(
                    """
                    SELECT 1 FROM blob_scrub WHERE sha256 = $1 AND verified_at IS NULL
                        AND (SELECT count(*) FROM superseded_blob WHERE sha256 = $1) >= 2
                        AND NOT EXISTS (SELECT 1 FROM superseded_blob WHERE staging_key = $2)
                    """, [.digest(blob.digest), .text(blob.key.text)]
                ).rowCount > 0
            if !isSpare { try db.add(blob) }
            _ = try db.query(
                """
                UPDATE blob_scrub SET generation = generation + 1, verified_at = NULL, due_at = $2,
                    checked_bytes = 0, holder = NULL, lease_until = 0
                WHERE sha256 = $1
                """, [.digest(blob.digest), .time(now)])
            return !isSpare
        }
    }

    package func isReleasable(_ blob: SupersededBlob, at now: Timestamp) async throws -> Bool {
        try await single { db in
            try db.query(
                """
                SELECT 1 FROM superseded_blob
                    JOIN blob_scrub ON blob_scrub.sha256 = superseded_blob.sha256
                WHERE staging_key = $1 AND keep_until <= $2
                    AND verified_at IS NOT NULL AND damaged_at IS NULL
                """, [.text(blob.key.text), .time(now)]
            ).rowCount > 0
        }
    }

    package func supersededBlobs(of digest: SHA256Digest) async throws -> [SupersededBlob] {
        try await single { try $0.supersededBlobs(of: digest) }
    }

    package func releasableBlobs(
        at now: Timestamp, limit: Int
    ) async throws -> [SupersededBlob] {
        try await single { db in
            try db.query(
                """
                SELECT \(SupersededBlob.columns) FROM superseded_blob
                WHERE keep_until <= $1 AND EXISTS (
                    SELECT 1 FROM blob_scrub
                    WHERE blob_scrub.sha256 = superseded_blob.sha256
                        AND verified_at IS NOT NULL AND damaged_at IS NULL)
                ORDER BY keep_until LIMIT $2
                """, [.time(now), .int8(Int64(limit))]
            ).rows.map { try SupersededBlob($0) }
        }
    }

    /// Idempotent: a missing row is not an error.
    package func forgetSuperseded(_ blob: SupersededBlob) async throws {
        try await write { try $0.forget(blob) }
    }

    /// Idempotent: a second run finds the copy in place.
    package func restoreSuperseded(
        _ blob: SupersededBlob, of target: ScrubTarget, lease: WorkLease, nextAt: Timestamp,
        keepUntil: Timestamp
    ) async throws -> Bool {
        try await write { db in
            let found = try db.query(
                "SELECT staging_key, location FROM blob WHERE sha256 = $1 FOR UPDATE",
                [.digest(blob.digest)])
            guard let location = blob.location, var row = found.firstRow else { return false }
            let (key, old) = (StagingKey(try row.text()), try row.text())
            guard old != location else { return true }
            let renewed = try db.query(
                """
                UPDATE blob_scrub SET generation = generation + 1, verified_at = $3,
                    damaged_at = NULL, due_at = $4, checked_bytes = 0, holder = NULL,
                    lease_until = 0
                WHERE sha256 = $1 AND generation = $2 AND holder = $5
                    AND EXISTS (SELECT 1 FROM superseded_blob WHERE staging_key = $6)
                RETURNING 1
                """,
                [
                    .digest(blob.digest), .int8(target.generation), .time(lease.now),
                    .time(nextAt), .text(lease.holder), .text(blob.key.text),
                ])
            guard renewed.rowCount > 0 else { return false }
            let taken = try db.query(
                "DELETE FROM superseded_blob WHERE staging_key = $1 RETURNING 1",
                [.text(blob.key.text)])
            guard taken.rowCount > 0 else {
                throw MetadataError.unavailable("another node has released the copy")
            }
            try db.add(
                SupersededBlob(
                    digest: blob.digest, byteCount: blob.byteCount, key: key, location: old,
                    keepUntil: keepUntil))
            _ = try db.query(
                "UPDATE blob SET staging_key = $2, location = $3 WHERE sha256 = $1",
                [.digest(blob.digest), .text(blob.key.text), .text(location)])
            return true
        }
    }

    /// Idempotent: sets the same time.
    package func keepSuperseded(at locations: [String], until time: Timestamp) async throws {
        try await write { db in
            _ = try db.query(
                """
                UPDATE superseded_blob SET keep_until = greatest(keep_until, $2)
                WHERE location = ANY($1)
                """, [.texts(locations), .time(time)])
        }
    }

    /// The target of a first run without an acknowledged commit is claimed again when its lease
    /// expires.
    package func claimScrub(lease: WorkLease) async throws -> ScrubTarget? {
        try await write { db in
            while let target = try db.dueScrub(at: lease.now) {
                guard try db.isNeeded(target.digest) else {
                    try db.dropScrub(of: target.digest)
                    continue
                }
                _ = try db.query(
                    "UPDATE blob_scrub SET holder = $2, lease_until = $3 WHERE sha256 = $1",
                    [.digest(target.digest), .text(lease.holder), .time(lease.until)])
                return target
            }
            return nil
        }
    }

    /// Idempotent: sets the same values.
    package func renewScrub(
        _ target: ScrubTarget, lease: WorkLease, checkedByteCount: Int64
    ) async throws -> Bool {
        try await write { db in
            try db.query(
                """
                UPDATE blob_scrub SET lease_until = $4, checked_bytes = $5
                WHERE sha256 = $1 AND generation = $2 AND holder = $3 RETURNING 1
                """,
                [
                    .digest(target.digest), .int8(target.generation), .text(lease.holder),
                    .time(lease.until), .int8(checkedByteCount),
                ]
            ).rowCount > 0
        }
    }

    /// A second run after an unacknowledged commit finds its lease ended and returns false. The
    /// result counts; the log has one entry less.
    package func finishScrub(
        _ target: ScrubTarget, _ result: ScrubResult, lease: WorkLease, nextAt: Timestamp
    ) async throws -> Bool {
        try await write { db in
            try db.query(
                """
                UPDATE blob_scrub SET \(result.changes(now: "$3", next: "$4")), holder = NULL
                WHERE sha256 = $1 AND generation = $2 AND holder = $5 RETURNING 1
                """,
                [
                    .digest(target.digest), .int8(target.generation), .time(lease.now),
                    .time(nextAt), .text(lease.holder),
                ]
            ).rowCount > 0
        }
    }

    /// A second run after an unacknowledged commit returns false; the log has one entry less.
    package func markDamaged(_ file: FileRecord, at now: Timestamp) async throws -> Bool {
        try await write { db in
            try db.query(
                """
                UPDATE blob_scrub SET damaged_at = $2, due_at = $2, checked_bytes = 0,
                    holder = NULL, lease_until = 0
                WHERE sha256 = $1 AND damaged_at IS NULL
                    AND (SELECT location FROM blob WHERE sha256 = $1) IS NOT DISTINCT FROM $3
                RETURNING 1
                """, [.digest(file.digest), .time(now), .text(file.location)]
            ).rowCount > 0
        }
    }

    /// Idempotent: existing rows stay.
    package func addMissingScrubs(
        after digest: SHA256Digest?, at now: Timestamp
    ) async throws -> SHA256Digest? {
        try await write { db in
            let last = try db.query(
                """
                WITH page AS (
                    SELECT sha256, max(byte_count) AS byte_count FROM file
                    WHERE deleted_at IS NULL AND sha256 > $1
                    GROUP BY sha256 ORDER BY sha256 LIMIT 1000),
                added AS (
                    INSERT INTO blob_scrub (sha256, byte_count, generation, due_at)
                    SELECT sha256, byte_count, $2, $2 FROM page ON CONFLICT DO NOTHING)
                SELECT sha256 FROM page ORDER BY sha256 DESC LIMIT 1
                """, [.bytea(digest?.bytes ?? []), .time(now)])
            guard var row = last.firstRow else { return nil }
            return try row.digest()
        }
    }

    package func scrubBacklog() async throws -> ScrubBacklog {
        try await single { db in
            let counts = try db.query(
                """
                SELECT count(*), min(due_at),
                    (SELECT count(*) FROM blob_scrub WHERE damaged_at IS NOT NULL)
                FROM blob_scrub WHERE verified_at IS NULL AND damaged_at IS NULL
                """)
            guard var row = counts.firstRow else { throw MetadataError.failed("no counts") }
            return ScrubBacklog(
                newCount: Int(try row.integer()),
                oldestNew: row.optionalInteger().map { Timestamp(millisecondsSinceEpoch: $0) },
                damagedCount: Int(try row.integer()))
        }
    }

    package func liveFiles(
        with digest: SHA256Digest, limit: Int
    ) async throws -> [FileRecord] {
        try await single { db in
            try db.query(
                """
                SELECT \(FileRecord.columns) FROM \(FileRecord.source)
                WHERE file.sha256 = $1 AND file.deleted_at IS NULL
                ORDER BY file.created_at DESC, file.id DESC LIMIT $2
                """, [.digest(digest), .int8(Int64(limit))]
            ).rows.map { try FileRecord($0) }
        }
    }

    package func damagedFiles(
        of owner: OwnerID, after cursor: FileCursor?, limit: Int
    ) async throws -> [FileRecord] {
        try await single { db in
            let start = cursor ?? FileCursor.beforeAll
            return try db.query(
                """
                SELECT \(FileRecord.columns)
                FROM blob_scrub JOIN file ON file.sha256 = blob_scrub.sha256
                    LEFT JOIN blob ON blob.sha256 = file.sha256
                WHERE blob_scrub.damaged_at IS NOT NULL AND file.deleted_at IS NULL
                    AND file.owner = $1 AND (file.created_at, file.id) < ($2, $3)
                ORDER BY file.created_at DESC, file.id DESC LIMIT $4
                """,
                [
                    .text(owner.text), .time(start.createdAt), .text(start.id.text),
                    .int8(Int64(limit)),
                ]
            ).rows.map { try FileRecord($0) }
        }
    }
}

extension PostgresConnection {
    /// Schedules a scrub of the blob's new bytes and clears what was known about the old ones.
    func beginScrub(of digest: SHA256Digest, byteCount: Int64, at now: Timestamp) throws {
        _ = try query(
            """
            INSERT INTO blob_scrub (sha256, byte_count, generation, due_at, stored_at)
            VALUES ($1, $2, $3, $3, $3)
            ON CONFLICT (sha256) DO UPDATE SET
                generation = greatest(blob_scrub.generation + 1, excluded.generation),
                verified_at = NULL, damaged_at = NULL, due_at = excluded.due_at,
                stored_at = excluded.stored_at, checked_bytes = 0, holder = NULL, lease_until = 0
            """, [.digest(digest), .int8(byteCount), .time(now)])
    }

    /// Deletes the scrub state of a blob that no file needs. Copies with a location become garbage;
    /// the others are removed with the blob.
    func dropScrub(of digest: SHA256Digest) throws {
        _ = try query("DELETE FROM blob_scrub WHERE sha256 = $1", [.digest(digest)])
        let copies = try supersededBlobs(of: digest)
        for copy in copies where copy.location != nil { try forget(copy) }
        if copies.contains(where: { $0.location == nil }) { try add(.blob(digest)) }
    }

    func add(_ blob: SupersededBlob) throws {
        _ = try query(
            """
            INSERT INTO superseded_blob (sha256, byte_count, staging_key, location, keep_until)
            VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING
            """,
            [
                .digest(blob.digest), .int8(blob.byteCount), .text(blob.key.text),
                .text(blob.location), .time(blob.keepUntil),
            ])
    }

    fileprivate func supersededBlobs(of digest: SHA256Digest) throws -> [SupersededBlob] {
        try query(
            """
            SELECT \(SupersededBlob.columns) FROM superseded_blob WHERE sha256 = $1
            ORDER BY keep_until DESC, staging_key
            """, [.digest(digest)]
        ).rows.map { try SupersededBlob($0) }
    }

    fileprivate func forget(_ blob: SupersededBlob) throws {
        let gone = try query(
            "DELETE FROM superseded_blob WHERE staging_key = $1 RETURNING 1",
            [.text(blob.key.text)])
        if gone.rowCount > 0, blob.location != nil { try add(.staging(blob.key)) }
    }

    /// Locks and returns the next due blob. Blobs that another node is about to take are skipped.
    fileprivate func dueScrub(at now: Timestamp) throws -> ScrubTarget? {
        for condition in ScrubTarget.urgency {
            let row = try query(
                """
                SELECT sha256, byte_count, generation, due_at, checked_bytes,
                    verified_at IS NULL AND damaged_at IS NULL
                FROM blob_scrub WHERE \(condition) AND due_at <= $1 AND lease_until <= $1
                ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED
                """, [.time(now)]
            ).firstRow
            if let row { return try ScrubTarget(row) }
        }
        return nil
    }
}

extension SupersededBlob {
    /// The columns that ``init(_:)`` reads, in order.
    static let columns = "sha256, byte_count, staging_key, location, keep_until"

    init(_ row: PostgresRow) throws {
        var row = row
        self.init(
            digest: try row.digest(), byteCount: try row.integer(),
            key: StagingKey(try row.text()), location: row.optionalText(),
            keepUntil: try row.time())
    }
}

extension ScrubTarget {
    fileprivate init(_ row: PostgresRow) throws {
        var row = row
        let (digest, byteCount) = (try row.digest(), try row.integer())
        let (generation, dueAt) = (try row.integer(), try row.time())
        let checked = try row.integer()
        self.init(
            digest: digest, byteCount: byteCount, generation: generation,
            isNew: try row.bool(), dueAt: dueAt, checkedByteCount: checked)
    }
}
