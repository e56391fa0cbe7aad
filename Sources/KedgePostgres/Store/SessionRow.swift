internal import Foundation
internal import KedgeEngine
internal import KedgeModel

/// A session with its row number, to which other rows refer.
package struct SessionRow {
    let number: Int64
    var record: SessionRecord
    /// Whether the session owns its received bytes.
    let hasStaging: Bool
    let stagingState: String?
    let revision: Int64
    let resetRevision: Int64
    /// Bytes reserved for the session; nil for its file size.
    let reservedBytes: Int64?

    /// The columns that ``init(_:)`` reads, in order.
    static let columns = """
        session.number, session.id, session.owner, session.staging_key, session.file_name, \
        session.mime_type, session.file_size, session.chunk_size, session.declared_sha256, \
        session.metadata, session.state, session.created_at, session.expires_at, \
        session.prefix_offset, session.prefix_state, session.file_id, session.final_sha256, \
        session.staging_state, session.revision, session.reset_revision, session.parts, \
        session.max_byte_count, session.min_byte_count, session.created_by, session.link_id, \
        session.reserved_bytes
        """

    /// Reads a row that has only these columns.
    init(_ row: PostgresRow) throws {
        var row = row
        try self.init(&row)
    }

    /// Reads the row's next columns.
    init(_ row: inout PostgresRow) throws {
        number = try row.integer()
        let id = try row.identifier() as SessionID
        let owner = OwnerID(try row.text())
        let stagingKey = row.optionalText()
        hasStaging = stagingKey != nil
        record = SessionRecord(
            id: id, owner: owner,
            // A session that released its bytes reads back with its default key. In such a state no
            // code uses the bytes.
            stagingKey: stagingKey.map { StagingKey($0) } ?? StagingKey(id),
            fileName: try row.text(), mimeType: row.optionalText(),
            fileSize: row.optionalInteger(), chunkSize: try row.integer(),
            declaredDigest: try row.optionalDigest(),
            metadata: try MetadataText.decode(row.text()), state: try row.state(),
            createdAt: try row.time(), expiresAt: try row.time())
        let (offset, state) = (row.optionalInteger(), row.optionalBytes())
        if let offset, let state { record.prefix = HashCheckpoint(offset: offset, state: state) }
        record.fileID = try row.optionalText().map { try FileID(stored: $0) }
        record.finalDigest = try row.optionalDigest()
        stagingState = row.optionalText()
        revision = try row.integer()
        resetRevision = try row.integer()
        record.sourceIDs = try SessionRecord.sourceIDs(row.optionalText())
        record.maxByteCount = row.optionalInteger()
        record.minByteCount = row.optionalInteger()
        record.createdBy = row.optionalText()
        record.linkID = row.optionalText()
        reservedBytes = row.optionalInteger()
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

extension PostgresRow {
    mutating func time() throws -> Timestamp {
        Timestamp(millisecondsSinceEpoch: try integer())
    }

    /// Reads the time in the next column; nil for NULL.
    mutating func optionalTime() -> Timestamp? {
        optionalInteger().map { Timestamp(millisecondsSinceEpoch: $0) }
    }

    /// Reads an identifier; throws `failed` when the column does not hold one.
    mutating func identifier<ID: RandomIdentifier>() throws -> ID { try ID(stored: try text()) }

    mutating func digest() throws -> SHA256Digest {
        guard let digest = try optionalDigest() else {
            throw MetadataError.failed("a digest is missing")
        }
        return digest
    }

    /// Reads the digest in the next column; nil for NULL.
    mutating func optionalDigest() throws -> SHA256Digest? {
        guard let bytes = optionalBytes() else { return nil }
        guard let digest = SHA256Digest(bytes: bytes) else {
            throw MetadataError.failed("a column has no valid digest")
        }
        return digest
    }

    fileprivate mutating func state() throws -> SessionState {
        let text = try text()
        guard let state = SessionState(rawValue: text) else {
            throw MetadataError.failed("a session has the unknown state \(text)")
        }
        return state
    }
}

extension RandomIdentifier {
    fileprivate init(stored text: String) throws {
        guard let id = Self(text) else {
            throw MetadataError.failed("a column has no valid identifier")
        }
        self = id
    }
}
