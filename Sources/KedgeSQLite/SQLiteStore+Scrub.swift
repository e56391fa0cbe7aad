internal import GRDB
package import KedgeEngine
package import KedgeModel

extension SQLiteStore {
    package func supersede(_ blob: SupersededBlob) async throws {
        try await commits.write { try $0.add(blob) }
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
        _ blob: SupersededBlob, of target: ScrubTarget, at now: Timestamp, nextAt: Timestamp,
        keepUntil: Timestamp
    ) async throws -> Bool {
        try await commits.write { db in
            guard let location = blob.location,
                let row = try db.row(
                    "SELECT staging_key, location FROM blob WHERE sha256 = ?", [blob.digest.data]),
                row["location"] != location,
                try db.exists(
                    "SELECT 1 FROM blob_scrub WHERE sha256 = ? AND generation = ?",
                    [blob.digest.data, target.generation])
            else { return false }
            try db.run(
                "DELETE FROM superseded_blob WHERE staging_key = ?", [blob.key.text])
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
                    damaged_at = NULL, due_at = ?3, checked_chunks = 0, holder = NULL,
                    lease_until = 0
                WHERE sha256 = ?1
                """,
                [blob.digest.data, now.millisecondsSinceEpoch, nextAt.millisecondsSinceEpoch])
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
            while let target = try db.dueScrub(at: lease.now) {
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
        _ target: ScrubTarget, lease: WorkLease, checkedChunkCount: Int
    ) async throws -> Bool {
        try await commits.write { db in
            try db.run(
                """
                UPDATE blob_scrub SET lease_until = ?, checked_chunks = ?
                WHERE sha256 = ? AND generation = ? AND holder = ?
                """,
                [
                    lease.until.millisecondsSinceEpoch, checkedChunkCount, target.digest.data,
                    target.generation, lease.holder,
                ]) > 0
        }
    }

    package func finishScrub(
        _ target: ScrubTarget, _ verdict: ScrubVerdict, at now: Timestamp, nextAt: Timestamp
    ) async throws -> Bool {
        let changes =
            switch verdict {
            case .right: "verified_at = :now, damaged_at = NULL, checked_chunks = 0,"
            case .damaged: "damaged_at = coalesce(damaged_at, :now), checked_chunks = 0,"
            case .undecided: "checked_chunks = checked_chunks + 0 * :now,"
            }
        return try await commits.write { db in
            try db.run(
                """
                UPDATE blob_scrub SET \(changes) due_at = :next, holder = NULL, lease_until = 0
                WHERE sha256 = :digest AND generation = :generation
                """,
                [
                    "now": now.millisecondsSinceEpoch, "next": nextAt.millisecondsSinceEpoch,
                    "digest": target.digest.data, "generation": target.generation,
                ]) > 0
        }
    }

    package func markDamaged(_ digest: SHA256Digest, at now: Timestamp) async throws -> Bool {
        try await commits.write { db in
            try db.run(
                """
                UPDATE blob_scrub SET damaged_at = ?1, due_at = ?1
                WHERE sha256 = ?2 AND damaged_at IS NULL
                """, [now.millisecondsSinceEpoch, digest.data]) > 0
        }
    }

    package func addMissingScrubs(at now: Timestamp) async throws {
        try await commits.write { db in
            _ = try db.run(
                """
                INSERT INTO blob_scrub (sha256, byte_count, generation, due_at)
                SELECT sha256, max(byte_count), ?1, ?1 FROM file
                WHERE deleted_at IS NULL
                    AND NOT EXISTS (
                        SELECT 1 FROM blob_scrub WHERE blob_scrub.sha256 = file.sha256)
                GROUP BY sha256
                """, [now.millisecondsSinceEpoch])
        }
    }

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
                SELECT \(FileRecord.columns) FROM \(FileRecord.source)
                WHERE file.owner = ? AND file.deleted_at IS NULL
                    AND (file.created_at, file.id) < (?, ?)
                    AND blob_scrub.damaged_at IS NOT NULL
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
    /// Other bytes are the blob from now on: nothing is known of them yet.
    func beginScrub(of digest: SHA256Digest, byteCount: Int64, at now: Timestamp) throws {
        try run(
            """
            INSERT INTO blob_scrub (sha256, byte_count, generation, due_at)
            VALUES (?1, ?2, ?3, ?3)
            ON CONFLICT DO UPDATE SET generation = max(generation + 1, excluded.generation),
                verified_at = NULL, damaged_at = NULL, due_at = excluded.due_at,
                checked_chunks = 0, holder = NULL, lease_until = 0
            """, [digest.data, byteCount, now.millisecondsSinceEpoch])
    }

    /// Forgets what is known of a blob that no file needs any more. Copies that have a location become
    /// garbage; others go with the blob.
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

    fileprivate func dueScrub(at now: Timestamp) throws -> ScrubTarget? {
        for condition in ["verified_at IS NULL AND damaged_at IS NULL AND ", ""] {
            let row = try row(
                """
                SELECT sha256, byte_count, generation, due_at, checked_chunks,
                    verified_at IS NULL AND damaged_at IS NULL AS is_new
                FROM blob_scrub WHERE \(condition)due_at <= ?1 AND lease_until <= ?1
                ORDER BY due_at LIMIT 1
                """, [now.millisecondsSinceEpoch])
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
            checkedChunkCount: row["checked_chunks"])
    }
}

extension Row {
    /// - Throws: `failed` for a column without a digest.
    fileprivate func knownDigest(_ column: String) throws -> SHA256Digest {
        guard let digest = try digest(column) else {
            throw MetadataError.failed("a row of a blob has no digest")
        }
        return digest
    }
}
