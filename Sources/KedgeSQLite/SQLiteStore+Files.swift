internal import Foundation
internal import GRDB
package import KedgeEngine
package import KedgeModel

extension SQLiteStore {
    package func file(_ id: FileID, owner: OwnerID) async throws -> FileRecord? {
        try await commits.read { db in
            try db.file(id).flatMap { $0.owner == owner ? $0 : nil }
        }
    }

    package func files(
        of owner: OwnerID, after cursor: FileCursor?, limit: Int
    ) async throws -> [FileRecord] {
        try await commits.read { db in
            let start = cursor ?? FileCursor.beforeAll
            return try db.rows(
                """
                SELECT \(FileRecord.columns) FROM file
                WHERE owner = ? AND deleted_at IS NULL AND (created_at, id) < (?, ?)
                ORDER BY created_at DESC, id DESC LIMIT ?
                """,
                [
                    owner.text, start.createdAt.millisecondsSinceEpoch, start.id.text, limit,
                ]
            ).map { try FileRecord($0) }
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
            // Fewer after the file was deleted and its session forgotten; half a list would be
            // taken for the whole.
            let layout = ChunkLayout(fileSize: file.byteCount, chunkSize: file.chunkSize)
            guard digests.count == layout.chunkCount else { throw MetadataError.notFound }
            return digests
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
            try db.makeGarbage(unlessNeeded: file.digest)
        }
    }
}

extension Database {
    /// The file of this id, deleted or not.
    func file(_ id: FileID) throws -> FileRecord? {
        try row("SELECT \(FileRecord.columns) FROM file WHERE id = ?", [id.text])
            .map { try FileRecord($0) }
    }
}

extension FileCursor {
    /// Where a list starts: later than every file.
    fileprivate static let beforeAll = FileCursor(
        createdAt: Timestamp(millisecondsSinceEpoch: .max),
        id: FileID(wellFormed: String(repeating: "f", count: 32)))
}

extension FileRecord {
    static let columns = """
        id, owner, session_id, file_name, mime_type, byte_count, sha256, chunk_size, created_at, \
        deleted_at
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
                .map { Timestamp(millisecondsSinceEpoch: $0) })
    }
}
