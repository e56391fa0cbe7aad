internal import Foundation
internal import GRDB
package import KedgeEngine
package import KedgeModel

extension SQLiteStore {
    package func file(_ id: FileID, owner: OwnerID) async throws -> FileRecord? {
        try await commits.read { db in
            // The owner is a condition of the query: a file of another owner then takes as long as
            // an unknown id.
            try db.row(
                """
                SELECT \(FileRecord.columns) FROM \(FileRecord.source)
                WHERE file.id = ? AND file.owner = ?
                """, [id.text, owner.text]
            ).map { try FileRecord($0) }
        }
    }

    package func files(
        of owner: OwnerID, after cursor: FileCursor?, limit: Int
    ) async throws -> [FileRecord] {
        try await commits.read { db in
            let start = cursor ?? FileCursor.beforeAll
            return try db.rows(
                """
                SELECT \(FileRecord.columns) FROM \(FileRecord.source)
                WHERE file.owner = ? AND file.deleted_at IS NULL
                    AND (file.created_at, file.id) < (?, ?)
                ORDER BY file.created_at DESC, file.id DESC LIMIT ?
                """,
                [
                    owner.text, start.createdAt.millisecondsSinceEpoch, start.id.text, limit,
                ]
            ).map { try FileRecord($0) }
        }
    }

    package func files(
        of owner: OwnerID, under prefix: PathPrefix, after cursor: FileCursor?, limit: Int
    ) async throws -> [FileRecord] {
        try await commits.read { db in
            let start = cursor ?? FileCursor.beforeAll
            var files: [FileRecord] = []
            for range in prefix.ranges where files.count < limit {
                // A condition that may be absent would be no end of the range in the index.
                let upper = range.upper == nil ? "" : "AND file.path < ?3"
                // Both conditions on the lower end are needed: the first one uses the index.
                files += try db.rows(
                    """
                    SELECT \(FileRecord.columns) FROM \(FileRecord.source)
                    WHERE file.owner = ?1 AND file.deleted_at IS NULL
                        AND file.path >= max(?2, ?4) \(upper)
                        AND (file.path > ?4 OR (file.created_at, file.id) < (?5, ?6))
                    ORDER BY file.path, file.created_at DESC, file.id DESC LIMIT ?7
                    """,
                    [
                        owner.text, range.lower, range.upper ?? "", start.path ?? "",
                        start.createdAt.millisecondsSinceEpoch, start.id.text,
                        limit - files.count,
                    ]
                ).map { try FileRecord($0) }
            }
            return files
        }
    }

    package func chunkDigests(of file: FileRecord) async throws -> [SHA256Digest] {
        try await commits.read { db in
            var digests: [SHA256Digest] = []
            try db.forEachRow(
                """
                SELECT chunk.sha256 FROM file JOIN chunk ON chunk.session = file.session
                WHERE file.id = ? ORDER BY chunk.idx
                """, [file.id.text]
            ) { digests.append(try $0.chunkDigest(at: 0)) }
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
        try await commits.read { db in
            let rows = try db.rows(
                """
                SELECT id, sha256, first_chunk FROM (
                    SELECT file.id, file.sha256, file.created_at,
                        (SELECT sha256 FROM chunk WHERE chunk.session = file.session AND idx = 0)
                            AS first_chunk
                    FROM file JOIN blob_scrub ON blob_scrub.sha256 = file.sha256
                    WHERE file.owner = ?1 AND file.byte_count = ?2 AND file.deleted_at IS NULL
                        AND file.chunk_size = ?3 AND blob_scrub.damaged_at IS NULL
                        AND max(coalesce(verified_at, 0), coalesce(stored_at, 0)) >= ?4
                    ORDER BY file.created_at DESC, file.id DESC LIMIT ?5)
                WHERE ?6 IS NULL OR first_chunk = ?6 OR sha256 = ?6
                ORDER BY created_at DESC, id DESC LIMIT 64
                """,
                [
                    shape.owner.text, shape.byteCount, shape.chunkSize,
                    shape.verifiedSince.millisecondsSinceEpoch, match.comparedFileCount,
                    match.digest?.data,
                ])
            let files = try rows.compactMap { row -> StoredFile? in
                guard let digest = try row.digest("sha256"),
                    let first = try row.digest("first_chunk")
                else { return nil }
                return StoredFile(
                    remoteFileId: try row.identifier("id"), fileHashSha256: digest,
                    firstChunkSha256: first)
            }
            return StoredFile.distinct(files.filter(match.matches), limit: limit)
        }
    }

    package func deleteFile(_ id: FileID, owner: OwnerID, at now: Timestamp) async throws {
        try await commits.write { db in
            guard let file = try db.file(id), file.owner == owner else {
                throw MetadataError.notFound
            }
            guard file.deletedAt == nil else { return }
            try db.run(
                "UPDATE file SET deleted_at = ? WHERE id = ?",
                [now.millisecondsSinceEpoch, id.text])
            if file.location != nil {
                try db.dropBlob(unlessNeeded: file.digest)
            } else {
                try db.makeGarbage(unlessNeeded: file.digest)
            }
            if try !db.isNeeded(file.digest) { try db.dropScrub(of: file.digest) }
        }
    }

    package func blobLocation(fromStaging key: StagingKey) async throws -> String? {
        try await commits.read { db in
            try db.row(
                """
                SELECT location FROM blob WHERE staging_key = ?1
                UNION ALL SELECT location FROM superseded_blob
                WHERE staging_key = ?1 AND location IS NOT NULL
                LIMIT 1
                """, [key.text])?["location"]
        }
    }
}

extension Database {
    /// Returns the file, deleted or not.
    func file(_ id: FileID) throws -> FileRecord? {
        try row(
            "SELECT \(FileRecord.columns) FROM \(FileRecord.source) WHERE file.id = ?", [id.text]
        ).map { try FileRecord($0) }
    }
}

extension FileRecord {
    static let columns = """
        file.id, file.owner, file.session_id, file.file_name, file.mime_type, file.byte_count, \
        file.sha256, file.chunk_size, file.created_at, file.deleted_at, blob.location, \
        blob_scrub.damaged_at, file.path, file.modified_at
        """
    static let source = """
        file LEFT JOIN blob ON blob.sha256 = file.sha256 \
        LEFT JOIN blob_scrub ON blob_scrub.sha256 = file.sha256
        """

    init(_ row: Row) throws {
        guard let digest = try row.digest("sha256") else {
            throw MetadataError.failed("a file has no digest")
        }
        self.init(
            id: try row.identifier("id"), owner: OwnerID(row["owner"]),
            sessionID: try row.identifier("session_id"), fileName: row["file_name"],
            mimeType: row["mime_type"], byteCount: row["byte_count"], digest: digest,
            chunkSize: row["chunk_size"], createdAt: row.time("created_at"),
            deletedAt: (row["deleted_at"] as Int64?)
                .map { Timestamp(millisecondsSinceEpoch: $0) }, location: row["location"],
            damagedAt: (row["damaged_at"] as Int64?)
                .map { Timestamp(millisecondsSinceEpoch: $0) }, path: row["path"],
            modified: (row["modified_at"] as Int64?).map { FileTime(nanosecondsSinceEpoch: $0) })
    }
}
