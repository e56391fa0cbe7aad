internal import GRDB
package import KedgeEngine
package import KedgeModel

extension SQLiteStore {
    package func supersede(_ blob: SupersededBlob, at now: Timestamp) async throws -> Bool {
        try await commits.write { db in
            let isSpare = try db.exists(
                """
                SELECT 1 FROM blob_scrub WHERE sha256 = ?1 AND verified_at IS NULL
                    AND (SELECT count(*) FROM superseded_blob WHERE sha256 = ?1) >= 2
                    AND NOT EXISTS (SELECT 1 FROM superseded_blob WHERE staging_key = ?2)
                """, [blob.digest.data, blob.key.text])
            if !isSpare { try db.add(blob) }
            try db.run(
                """
                UPDATE blob_scrub SET generation = generation + 1, verified_at = NULL, due_at = ?2,
                    checked_bytes = 0, holder = NULL, lease_until = 0
                WHERE sha256 = ?1
                """, [blob.digest.data, now.millisecondsSinceEpoch])
            return !isSpare
        }
    }

    package func isReleasable(_ blob: SupersededBlob, at now: Timestamp) async throws -> Bool {
        try await commits.read { db in
            try db.exists(
                """
                SELECT 1 FROM superseded_blob
                    JOIN blob_scrub ON blob_scrub.sha256 = superseded_blob.sha256
                WHERE staging_key = ? AND keep_until <= ?
                    AND verified_at IS NOT NULL AND damaged_at IS NULL
                """, [blob.key.text, now.millisecondsSinceEpoch])
        }
    }

    package func supersededBlobs(of digest: SHA256Digest) async throws -> [SupersededBlob] {
        try await commits.read { db in
            try db.rows(
                """
                SELECT \(SupersededBlob.columns) FROM superseded_blob WHERE sha256 = ?
                ORDER BY keep_until DESC, staging_key
                """, [digest.data]
            ).map { try SupersededBlob($0) }
        }
    }

    package func releasableBlobs(
        at now: Timestamp, limit: Int
    ) async throws -> [SupersededBlob] {
        try await commits.read { db in
            try db.rows(
                """
                SELECT \(SupersededBlob.columns) FROM superseded_blob
                WHERE keep_until <= ? AND EXISTS (
                    SELECT 1 FROM blob_scrub
                    WHERE blob_scrub.sha256 = superseded_blob.sha256
                        AND verified_at IS NOT NULL AND damaged_at IS NULL)
                ORDER BY keep_until LIMIT ?
                """, [now.millisecondsSinceEpoch, limit]
            ).map { try SupersededBlob($0) }
        }
    }

    package func forgetSuperseded(_ blob: SupersededBlob) async throws {
        try await commits.write { try $0.forget(blob) }
    }

    package func restoreSuperseded(
        _ blob: SupersededBlob, of target: ScrubTarget, lease: WorkLease, nextAt: Timestamp,
        keepUntil: Timestamp
    ) async throws -> Bool {
        try await commits.write { db in
            guard let location = blob.location,
                let row = try db.row(
                    "SELECT staging_key, location FROM blob WHERE sha256 = ?", [blob.digest.data]),
                row["location"] != location,
                try db.exists(
                    """
                    SELECT 1 FROM blob_scrub
                    WHERE sha256 = ? AND generation = ? AND holder = ?
                    """, [blob.digest.data, target.generation, lease.holder]),
                try db.run(
                    "DELETE FROM superseded_blob WHERE staging_key = ?", [blob.key.text]) > 0
            else { return false }
            try db.add(
                SupersededBlob(
                    digest: blob.digest, byteCount: blob.byteCount,
                    key: StagingKey(row["staging_key"] as String), location: row["location"],
                    keepUntil: keepUntil))
            try db.run(
                "UPDATE blob SET staging_key = ?, location = ? WHERE sha256 = ?",
                [blob.key.text, location, blob.digest.data])
            try db.run(
                """
                UPDATE blob_scrub SET generation = generation + 1, verified_at = ?2,
                    damaged_at = NULL, due_at = ?3, checked_bytes = 0, holder = NULL,
                    lease_until = 0
                WHERE sha256 = ?1
                """,
                [
                    blob.digest.data, lease.now.millisecondsSinceEpoch,
                    nextAt.millisecondsSinceEpoch,
                ])
            return true
        }
    }

    package func keepSuperseded(at locations: [String], until time: Timestamp) async throws {
        try await commits.write { db in
            for location in locations {
                try db.run(
                    "UPDATE superseded_blob SET keep_until = max(keep_until, ?) WHERE location = ?",
                    [time.millisecondsSinceEpoch, location])
            }
        }
    }

    package func claimScrub(lease: WorkLease) async throws -> ScrubTarget? {
        try await commits.write { db in
            while let target = try db.dueScrub(lease) {
                guard try db.isNeeded(target.digest) else {
                    try db.dropScrub(of: target.digest)
                    continue
                }
                try db.run(
                    "UPDATE blob_scrub SET holder = ?, lease_until = ? WHERE sha256 = ?",
                    [lease.holder, lease.until.millisecondsSinceEpoch, target.digest.data])
                return target
            }
            return nil
        }
    }

    package func renewScrub(
        _ target: ScrubTarget, lease: WorkLease, checkedByteCount: Int64
    ) async throws -> Bool {
        try await commits.write { db in
            try db.run(
                """
                UPDATE blob_scrub SET lease_until = ?, checked_bytes = ?
                WHERE sha256 = ? AND generation = ? AND holder = ?
                """,
                [
                    lease.until.millisecondsSinceEpoch, checkedByteCount, target.digest.data,
                    target.generation, lease.holder,
                ]) > 0
        }
    }

    package func finishScrub(
        _ target: ScrubTarget, _ result: ScrubResult, lease: WorkLease, nextAt: Timestamp
    ) async throws -> Bool {
        try await commits.write { db in
            try db.run(
                """
                UPDATE blob_scrub SET \(result.changes(now: ":now", next: ":next")), holder = NULL
                WHERE sha256 = :digest AND generation = :generation AND holder = :holder
                """,
                [
                    "now": lease.now.millisecondsSinceEpoch, "next": nextAt.millisecondsSinceEpoch,
                    "digest": target.digest.data, "generation": target.generation,
                    "holder": lease.holder,
                ]) > 0
        }
    }

    package func markDamaged(_ file: FileRecord, at now: Timestamp) async throws -> Bool {
        try await commits.write { db in
            guard try db.location(of: file.digest) == file.location else { return false }
            return try db.run(
                """
                UPDATE blob_scrub SET damaged_at = ?1, due_at = ?1, checked_bytes = 0,
                    holder = NULL, lease_until = 0
                WHERE sha256 = ?2 AND damaged_at IS NULL
                """, [now.millisecondsSinceEpoch, file.digest.data]) > 0
        }
    }

    /// Does nothing: the migration added the rows of existing files, and no other node creates
    /// files.
    package func addMissingScrubs(
        after digest: SHA256Digest?, at now: Timestamp
    ) async throws -> SHA256Digest? { nil }

    package func scrubBacklog() async throws -> ScrubBacklog {
        try await commits.read { db in
            let new = try db.row(
                """
                SELECT count(*) AS number, min(due_at) AS oldest FROM blob_scrub
                WHERE verified_at IS NULL AND damaged_at IS NULL
                """, [])
            let damaged = try db.row(
                "SELECT count(*) FROM blob_scrub WHERE damaged_at IS NOT NULL", [])
            return ScrubBacklog(
                newCount: new?["number"] ?? 0,
                oldestNew: (new?["oldest"] as Int64?)
                    .map { Timestamp(millisecondsSinceEpoch: $0) },
                damagedCount: damaged?[0] ?? 0)
        }
    }

    package func liveFiles(
        with digest: SHA256Digest, limit: Int
    ) async throws -> [FileRecord] {
        try await commits.read { db in
            try db.rows(
                """
                SELECT \(FileRecord.columns) FROM \(FileRecord.source)
                WHERE file.sha256 = ? AND file.deleted_at IS NULL
                ORDER BY file.created_at DESC, file.id DESC LIMIT ?
                """, [digest.data, limit]
            ).map { try FileRecord($0) }
        }
    }

    package func damagedFiles(
        of owner: OwnerID, after cursor: FileCursor?, limit: Int
    ) async throws -> [FileRecord] {
        try await commits.read { db in
            let start = cursor ?? FileCursor.beforeAll
            return try db.rows(
                """
                SELECT \(FileRecord.columns)
                FROM blob_scrub CROSS JOIN file ON file.sha256 = blob_scrub.sha256
                    LEFT JOIN blob ON blob.sha256 = file.sha256
                WHERE blob_scrub.damaged_at IS NOT NULL AND file.deleted_at IS NULL
                    AND file.owner = ? AND (file.created_at, file.id) < (?, ?)
                ORDER BY file.created_at DESC, file.id DESC LIMIT ?
                """,
                [
                    owner.text, start.createdAt.millisecondsSinceEpoch, start.id.text, limit,
                ]
            ).map { try FileRecord($0) }
        }
    }
}

extension Database {
    /// Schedules a scrub of the blob's new bytes and clears what was known about the old ones.
    func beginScrub(of digest: SHA256Digest, byteCount: Int64, at now: Timestamp) throws {
        try run(
            """
            INSERT INTO blob_scrub (sha256, byte_count, generation, due_at, stored_at)
            VALUES (?1, ?2, ?3, ?3, ?3)
            ON CONFLICT DO UPDATE SET generation = max(generation + 1, excluded.generation),
                verified_at = NULL, damaged_at = NULL, due_at = excluded.due_at,
                stored_at = excluded.stored_at, checked_bytes = 0, holder = NULL, lease_until = 0
            """, [digest.data, byteCount, now.millisecondsSinceEpoch])
    }

    /// Deletes the scrub state of a blob that no file needs. Copies with a location become garbage;
    /// the others are removed with the blob.
    func dropScrub(of digest: SHA256Digest) throws {
        try run("DELETE FROM blob_scrub WHERE sha256 = ?", [digest.data])
        let copies = try rows(
            "SELECT \(SupersededBlob.columns) FROM superseded_blob WHERE sha256 = ?",
            [digest.data]
        ).map { try SupersededBlob($0) }
        for copy in copies where copy.location != nil { try forget(copy) }
        if copies.contains(where: { $0.location == nil }) { try add(.blob(digest)) }
    }

    func add(_ blob: SupersededBlob) throws {
        try run(
            """
            INSERT INTO superseded_blob (sha256, byte_count, staging_key, location, keep_until)
            VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
            """,
            [
                blob.digest.data, blob.byteCount, blob.key.text, blob.location,
                blob.keepUntil.millisecondsSinceEpoch,
            ])
    }

    fileprivate func forget(_ blob: SupersededBlob) throws {
        let count = try run(
            "DELETE FROM superseded_blob WHERE staging_key = ?", [blob.key.text])
        if count > 0, blob.location != nil { try add(.staging(blob.key)) }
    }

    fileprivate func location(of digest: SHA256Digest) throws -> String? {
        try row("SELECT location FROM blob WHERE sha256 = ?", [digest.data])?["location"]
    }

    /// Returns the next due blob. Leases of other holders have lapsed, since this database has one
    /// process at a time.
    fileprivate func dueScrub(_ lease: WorkLease) throws -> ScrubTarget? {
        for condition in ScrubTarget.urgency {
            let row = try row(
                """
                SELECT sha256, byte_count, generation, due_at, checked_bytes,
                    verified_at IS NULL AND damaged_at IS NULL AS is_new
                FROM blob_scrub
                WHERE \(condition) AND due_at <= ?1 AND (lease_until <= ?1 OR holder <> ?2)
                ORDER BY due_at LIMIT 1
                """, [lease.now.millisecondsSinceEpoch, lease.holder])
            if let row { return try ScrubTarget(row) }
        }
        return nil
    }
}

extension SupersededBlob {
    static let columns = "sha256, byte_count, staging_key, location, keep_until"

    init(_ row: Row) throws {
        self.init(
            digest: try row.knownDigest("sha256"), byteCount: row["byte_count"],
            key: StagingKey(row["staging_key"] as String), location: row["location"],
            keepUntil: row.time("keep_until"))
    }
}

extension ScrubTarget {
    fileprivate init(_ row: Row) throws {
        self.init(
            digest: try row.knownDigest("sha256"), byteCount: row["byte_count"],
            generation: row["generation"], isNew: row["is_new"], dueAt: row.time("due_at"),
            checkedByteCount: row["checked_bytes"])
    }
}

extension Row {
    /// Reads a digest; throws `failed` for NULL.
    fileprivate func knownDigest(_ column: String) throws -> SHA256Digest {
        guard let digest = try digest(column) else {
            throw MetadataError.failed("a row of a blob has no digest")
        }
        return digest
    }
}
