package import KedgeEngine
package import KedgeModel

extension PostgresStore: CheckedRows {
    /// Reports the faults that the server itself has found: pages with a wrong checksum, and
    /// indexes and constraints marked as not valid. It does not read the tables. `pg_amcheck` does,
    /// and can run beside the service.
    package func databaseFaults() async throws -> [CheckFinding] {
        do {
            return try await single { try $0.faults() }
        } catch MetadataError.failed {
            // The damage is so severe that the check itself failed.
            return [CheckFinding(.databaseDamaged, "database", "it cannot be read to its end")]
        }
    }

    package func byteStoreIdentity() async throws -> String? {
        try await single { db in
            var row = try db.query("SELECT identity FROM byte_place").firstRow
            return try row?.text()
        }
    }

    package func promisedByteCount() async throws -> Int64 {
        try await single { db in
            // Reads all rows, hence the long timeout.
            var row = try db.query(
                """
                SELECT ((SELECT coalesce(sum(byte_count), 0) FROM (
                        SELECT DISTINCT sha256, byte_count FROM file
                        WHERE deleted_at IS NULL) AS blobs)
                    + (SELECT coalesce(sum(chunk.byte_count), 0) FROM chunk
                        JOIN session ON session.number = chunk.session
                        WHERE session.staging_key IS NOT NULL)
                    + (SELECT coalesce(sum(partial_chunk.byte_count), 0) FROM partial_chunk
                        JOIN session ON session.number = partial_chunk.session
                        WHERE session.staging_key IS NOT NULL))::bigint
                """, timeout: .seconds(3600)
            ).firstRow
            return try row?.integer() ?? 0
        }
    }

    package func sessionsWithBytes(
        after id: SessionID?, limit: Int
    ) async throws -> [SessionRecord] {
        try await single { db in
            try db.query(
                """
                SELECT \(SessionRow.columns) FROM session
                WHERE staging_key IS NOT NULL AND id > $1 ORDER BY id LIMIT $2
                """, [.text(id?.text ?? ""), .int8(Int64(limit))]
            ).rows.map { try SessionRow($0).record }
        }
    }

    package func sessionWithBytes(_ id: SessionID) async throws -> SessionRecord? {
        try await single { db in
            guard let session = try db.session(id), session.hasStaging else { return nil }
            return session.record
        }
    }

    package func chunks(
        of id: SessionID, from index: Int, limit: Int
    ) async throws -> [CommittedChunk] {
        try await single { db in
            try db.query(
                """
                SELECT idx, byte_count, sha256, location FROM chunk
                WHERE session = (SELECT number FROM session WHERE id = $1) AND idx >= $2
                ORDER BY idx LIMIT $3
                """, [.text(id.text), .int4(index), .int8(Int64(limit))]
            ).rows.map { row in
                var row = row
                return CommittedChunk(
                    index: Int(try row.integer()), byteCount: try row.integer(),
                    digest: try row.digest(), location: row.optionalText())
            }
        }
    }

    package func partials(
        of id: SessionID, from index: Int, limit: Int
    ) async throws -> [PartialRecord] {
        try await single { db in
            try db.query(
                """
                SELECT idx, byte_count, hash_state, declared_sha256, location, in_doubt
                FROM partial_chunk
                WHERE session = (SELECT number FROM session WHERE id = $1) AND idx >= $2
                ORDER BY idx LIMIT $3
                """, [.text(id.text), .int4(index), .int8(Int64(limit))]
            ).rows.map { row in
                var row = row
                return PartialRecord(
                    index: Int(try row.integer()), byteCount: try row.integer(),
                    hashState: try row.bytes(), declaredDigest: try row.optionalDigest(),
                    location: row.optionalText(), isInDoubt: try row.bool())
            }
        }
    }

    package func liveFiles(after file: FileRecord?, limit: Int) async throws -> [FileRecord] {
        try await single { db in
            try db.query(
                """
                SELECT \(FileRecord.columns) FROM \(FileRecord.source)
                WHERE file.deleted_at IS NULL AND (file.sha256, file.id) > ($1, $2)
                ORDER BY file.sha256, file.id LIMIT $3
                """,
                [
                    .bytea(file?.digest.bytes ?? []), .text(file?.id.text ?? ""),
                    .int8(Int64(limit)),
                ]
            ).rows.map { try FileRecord($0) }
        }
    }

    package func liveFile(_ id: FileID) async throws -> FileRecord? {
        try await single { db in
            guard let file = try db.file(id), file.deletedAt == nil else { return nil }
            return file
        }
    }

    package func quotaDrifts(after owner: OwnerID?, limit: Int) async throws -> [QuotaDrift] {
        try await single { db in try db.quotaDrifts(after: owner, limit: limit) }
    }

    package func isKnown(_ bytes: StoredBytes) async throws -> Bool {
        switch bytes {
        case .staging(let key):
            if try await isKnown(key) { return true }
            return try await blobLocation(fromStaging: key) != nil
        case .superseded(let digest, let key):
            return try await single { db in
                try db.query(
                    "SELECT 1 FROM superseded_blob WHERE staging_key = $1 AND sha256 = $2",
                    [.text(key.text), .digest(digest)]
                ).rowCount > 0
            }
        case .blob(let digest):
            return try await single { db in
                let isGarbage =
                    try db.query(
                        "SELECT 1 FROM garbage WHERE kind = 'blob' AND key = $1",
                        [.text(digest.hex)]
                    ).rowCount > 0
                return try isGarbage || db.isNeeded(digest)
            }
        }
    }
}

extension PostgresConnection {
    fileprivate func faults() throws -> [CheckFinding] {
        try query(
            """
            SELECT 'databaseDamaged', 'database', checksum_failures || ' pages had a wrong checksum'
            FROM pg_stat_database WHERE datname = current_database() AND checksum_failures > 0
            UNION ALL
            SELECT 'databaseDamaged', indrelid::regclass::text,
                'index ' || indexrelid::regclass || ' is not valid'
            FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
            WHERE relnamespace = current_schema()::regnamespace AND NOT (indisvalid AND indisready)
            UNION ALL
            SELECT 'referenceBroken', conrelid::regclass::text,
                'constraint ' || conname || ' was not checked for all rows'
            FROM pg_constraint
            WHERE connamespace = current_schema()::regnamespace AND NOT convalidated
            ORDER BY 1, 2, 3
            """
        ).rows.map { row in
            var row = row
            let kind = CheckFinding.Kind(rawValue: try row.text()) ?? .databaseDamaged
            return CheckFinding(kind, try row.text(), try row.text())
        }
    }
}
