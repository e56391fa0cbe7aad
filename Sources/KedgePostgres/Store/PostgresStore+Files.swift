package import KedgeEngine
package import KedgeModel

extension PostgresStore {
    package func file(_ id: FileID, owner: OwnerID) async throws -> FileRecord? {
        try await single { db in
            // The owner is a condition of the query: a file of another owner then takes as long as
            // an unknown id.
            try db.query(
                """
                SELECT \(FileRecord.columns) FROM \(FileRecord.source)
                WHERE file.id = $1 AND file.owner = $2
                """, [.text(id.text), .text(owner.text)]
            ).firstRow.map { try FileRecord($0) }
        }
    }

    package func files(
        of owner: OwnerID, after cursor: FileCursor?, limit: Int
    ) async throws -> [FileRecord] {
        try await single { db in
            let start = cursor ?? FileCursor.beforeAll
            return try db.query(
                """
                SELECT \(FileRecord.columns) FROM \(FileRecord.source)
                WHERE file.owner = $1 AND file.deleted_at IS NULL
                    AND (file.created_at, file.id) < ($2, $3)
                ORDER BY file.created_at DESC, file.id DESC LIMIT $4
                """,
                [
                    .text(owner.text), .time(start.createdAt), .text(start.id.text),
                    .int8(Int64(limit)),
                ]
            ).rows.map { try FileRecord($0) }
        }
    }

    package func files(
        of owner: OwnerID, under prefix: PathPrefix, after cursor: FileCursor?, limit: Int
    ) async throws -> [FileRecord] {
        try await single { db in
            let start = cursor ?? FileCursor.beforeAll
            var files: [FileRecord] = []
            for range in prefix.ranges where files.count < limit {
                let upper = range.upper.map { _ in "AND file.path < $7" } ?? ""
                var values: [PostgresValue] = [
                    .text(owner.text), .text(range.lower), .text(start.path ?? ""),
                    .time(start.createdAt), .text(start.id.text),
                    .int8(Int64(limit - files.count)),
                ]
                if let upper = range.upper { values.append(.text(upper)) }
                // Both conditions on the lower end are needed: the first one uses the index.
                files += try db.query(
                    """
                    SELECT \(FileRecord.columns) FROM \(FileRecord.source)
                    WHERE file.owner = $1 AND file.deleted_at IS NULL
                        AND file.path >= greatest($2 COLLATE "C", $3) \(upper)
                        AND (file.path > $3 OR (file.created_at, file.id) < ($4, $5))
                    ORDER BY file.path, file.created_at DESC, file.id DESC LIMIT $6
                    """, values
                ).rows.map { try FileRecord($0) }
            }
            return files
        }
    }

    package func chunkDigests(of file: FileRecord) async throws -> [SHA256Digest] {
        try await single { db in
            let digests = try db.query(
                """
                SELECT chunk.sha256 FROM file JOIN chunk ON chunk.session = file.session
                WHERE file.id = $1 ORDER BY chunk.idx
                """, [.text(file.id.text)]
            ).rows.map { row in
                var row = row
                return try row.digest()
            }
            // There are fewer after the file was deleted and its session removed. A part of the
            // list would be taken for all of it.
            let layout = ChunkLayout(fileSize: file.byteCount, chunkSize: file.chunkSize)
            guard digests.count == layout.chunkCount else { throw MetadataError.notFound }
            return digests
        }
    }

    package func storedFiles(
        like shape: StoredFileShape, _ match: StoredFileMatch, limit: Int
    ) async throws -> [StoredFile] {
        try await single { db in
            let files = try db.query(
                """
                SELECT id, sha256, first_chunk FROM (
                    SELECT file.id, file.sha256, file.created_at, chunk.sha256 AS first_chunk
                    FROM file JOIN blob_scrub ON blob_scrub.sha256 = file.sha256
                        JOIN chunk ON chunk.session = file.session AND chunk.idx = 0
                    WHERE file.owner = $1 AND file.byte_count = $2 AND file.deleted_at IS NULL
                        AND file.chunk_size = $3 AND blob_scrub.damaged_at IS NULL
                        AND greatest(verified_at, stored_at) >= $4
                    ORDER BY file.created_at DESC, file.id DESC LIMIT $5) AS newest
                WHERE $6::bytea IS NULL OR first_chunk = $6 OR sha256 = $6
                ORDER BY created_at DESC, id DESC LIMIT 64
                """,
                shape.values + [.int8(Int64(match.comparedFileCount)), .digest(match.digest)]
            ).rows.map { row in
                var row = row
                return StoredFile(
                    remoteFileId: try row.identifier(), fileHashSha256: try row.digest(),
                    firstChunkSha256: try row.digest())
            }
            return StoredFile.distinct(files.filter(match.matches), limit: limit)
        }
    }

    /// Idempotent: a deleted file stays as it is.
    package func deleteFile(_ id: FileID, owner: OwnerID, at now: Timestamp) async throws {
        try await write(of: owner) { db in
            guard let file = try db.lockedFile(id), file.owner == owner else {
                throw MetadataError.notFound
            }
            guard file.deletedAt == nil else { return }
            _ = try db.query(
                "UPDATE file SET deleted_at = $2 WHERE id = $1", [.text(id.text), .time(now)])
            try db.releaseBlob(ofBlob: file.digest)
            if try !db.isNeeded(file.digest) { try db.dropScrub(of: file.digest) }
        }
    }

    package func blobLocation(fromStaging key: StagingKey) async throws -> String? {
        try await single { db in
            var row = try db.query(
                """
                SELECT location FROM blob WHERE staging_key = $1
                UNION ALL SELECT location FROM superseded_blob
                WHERE staging_key = $1 AND location IS NOT NULL
                LIMIT 1
                """, [.text(key.text)]
            ).firstRow
            return row?.optionalText()
        }
    }
}

extension StoredFileShape {
    var values: [PostgresValue] {
        [.text(owner.text), .int8(byteCount), .int8(chunkSize), .time(verifiedSince)]
    }
}

extension PostgresConnection {
    /// Returns the file, deleted or not.
    func file(_ id: FileID) throws -> FileRecord? {
        try query(
            "SELECT \(FileRecord.columns) FROM \(FileRecord.source) WHERE file.id = $1",
            [.text(id.text)]
        ).firstRow.map { try FileRecord($0) }
    }

    fileprivate func lockedFile(_ id: FileID) throws -> FileRecord? {
        try query(
            """
            SELECT \(FileRecord.columns) FROM \(FileRecord.source) WHERE file.id = $1
            FOR NO KEY UPDATE OF file
            """, [.text(id.text)]
        ).firstRow.map { try FileRecord($0) }
    }

    /// Leaves the blob to the sweep when its last file is deleted.
    fileprivate func releaseBlob(ofBlob digest: SHA256Digest) throws {
        // Locked before the next statement looks for files: a transaction that creates or deletes a
        // file of this blob has ended by then, or begins afterwards.
        var blob = try query(
            "SELECT staging_key FROM blob WHERE sha256 = $1 FOR UPDATE", [.digest(digest)]
        ).firstRow
        guard let key = blob?.optionalText() else { return try makeGarbage(unlessNeeded: digest) }
        let rest = try query(
            "SELECT 1 FROM file WHERE sha256 = $1 AND deleted_at IS NULL LIMIT 1",
            [.digest(digest)])
        guard rest.rowCount == 0 else { return }
        _ = try query("DELETE FROM blob WHERE sha256 = $1", [.digest(digest)])
        try add(.staging(StagingKey(key)))
    }
}

extension FileRecord {
    /// The columns that ``init(_:)`` reads from ``source``, in order.
    static let columns = """
        file.id, file.owner, file.session_id, file.file_name, file.mime_type, file.byte_count, \
        file.sha256, file.chunk_size, file.created_at, file.deleted_at, blob.location, \
        blob_scrub.damaged_at, file.path, file.modified_at
        """

    static let source = """
        file LEFT JOIN blob ON blob.sha256 = file.sha256 \
        LEFT JOIN blob_scrub ON blob_scrub.sha256 = file.sha256
        """

    init(_ row: PostgresRow) throws {
        var row = row
        self.init(
            id: try row.identifier(), owner: OwnerID(try row.text()),
            sessionID: try row.identifier(), fileName: try row.text(),
            mimeType: row.optionalText(), byteCount: try row.integer(), digest: try row.digest(),
            chunkSize: try row.integer(), createdAt: try row.time(),
            deletedAt: row.optionalInteger().map { Timestamp(millisecondsSinceEpoch: $0) },
            location: row.optionalText(),
            damagedAt: row.optionalInteger().map { Timestamp(millisecondsSinceEpoch: $0) },
            path: row.optionalText(),
            modified: row.optionalInteger().map { FileTime(nanosecondsSinceEpoch: $0) })
    }
}
