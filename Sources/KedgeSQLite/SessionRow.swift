internal import Foundation
internal import GRDB
internal import KedgeEngine
internal import KedgeModel

/// A session with its row number, to which other rows refer.
struct SessionRow {
    let number: Int64
    var record: SessionRecord
    /// Whether the session owns its received bytes.
    let hasStaging: Bool
    /// The state that the byte store recorded for them.
    let stagingState: String?
    /// Bytes reserved for the session; nil for its file size.
    let reservedBytes: Int64?

    static let columns = """
        session.number, session.id, session.owner, session.staging_key, session.file_name, \
        session.mime_type, session.file_size, session.chunk_size, session.declared_sha256, \
        session.metadata, session.state, session.created_at, session.expires_at, \
        session.prefix_offset, session.prefix_state, session.file_id, session.final_sha256, \
        session.staging_state, session.parts, session.max_byte_count, session.min_byte_count, \
        session.created_by, session.link_id, session.reserved_bytes
        """

    init(_ row: Row) throws {
        number = row["number"]
        let id = try row.identifier("id") as SessionID
        let stagingKey: String? = row["staging_key"]
        hasStaging = stagingKey != nil
        stagingState = row["staging_state"]
        reservedBytes = row["reserved_bytes"]
        guard let state = SessionState(rawValue: row["state"]) else {
            throw MetadataError.failed("session \(id) has an unknown state")
        }
        record = SessionRecord(
            id: id, owner: OwnerID(row["owner"]),
            // A session that released its bytes reads back with its default key. In such a state no
            // code uses the bytes.
            stagingKey: stagingKey.map { StagingKey($0) } ?? StagingKey(id),
            fileName: row["file_name"], mimeType: row["mime_type"], fileSize: row["file_size"],
            chunkSize: row["chunk_size"], declaredDigest: try row.digest("declared_sha256"),
            metadata: try MetadataText.decode(row["metadata"]),
            sourceIDs: try SessionRecord.sourceIDs(row["parts"]), state: state,
            createdAt: row.time("created_at"), expiresAt: row.time("expires_at"),
            maxByteCount: row["max_byte_count"], minByteCount: row["min_byte_count"],
            createdBy: row["created_by"], linkID: row["link_id"])
        if let offset = row["prefix_offset"] as Int64?, let bytes = row["prefix_state"] as Data? {
            record.prefix = HashCheckpoint(offset: offset, state: [UInt8](bytes))
        }
        if let digest = try row.digest("final_sha256") {
            record.finalDigest = digest
            record.fileID = try row.identifier("file_id") as FileID
        }
    }
}

/// The metadata of a session as JSON text.
enum MetadataText {
    static func encode(_ metadata: [String: String]) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return String(decoding: try encoder.encode(metadata), as: UTF8.self)
    }

    static func decode(_ text: String) throws -> [String: String] {
        // Most sessions have none.
        if text == "{}" { return [:] }
        return try JSONDecoder().decode([String: String].self, from: Data(text.utf8))
    }
}

extension Row {
    func time(_ column: String) -> Timestamp {
        Timestamp(millisecondsSinceEpoch: self[column])
    }

    /// Reads the time in a column; nil for NULL.
    func optionalTime(_ column: String) -> Timestamp? {
        (self[column] as Int64?).map { Timestamp(millisecondsSinceEpoch: $0) }
    }

    /// Reads an identifier; throws `failed` when the column does not hold one.
    func identifier<ID: RandomIdentifier>(_ column: String) throws -> ID {
        guard let id = ID(self[column] as String) else {
            throw MetadataError.failed("column \(column) has no valid identifier")
        }
        return id
    }

    /// Reads the digest in a column; nil for NULL.
    func digest(_ column: String) throws -> SHA256Digest? {
        guard let data = self[column] as Data? else { return nil }
        guard let digest = SHA256Digest(bytes: [UInt8](data)) else {
            throw MetadataError.failed("column \(column) has no valid digest")
        }
        return digest
    }
}
