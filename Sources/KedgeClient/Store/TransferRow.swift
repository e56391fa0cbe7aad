internal import Foundation
internal import GRDB
internal import KedgeModel
internal import KedgeTransport

extension TransferDirection {
    /// The table of this direction; a constant, never external text.
    var table: String { self == .upload ? "upload_transfer" : "download_transfer" }

    /// Selects all columns of a record of this direction.
    var selection: String {
        guard self == .download else { return "SELECT * FROM upload_transfer" }
        return """
            SELECT *, (SELECT sum(synced_bytes) FROM download_partial
                WHERE transfer_id = download_transfer.transfer_id) AS partial_bytes
            FROM download_transfer
            """
    }
}

/// A row of either table, read by column name.
///
/// The schema guarantees the storage classes. Text that only a newer or damaged store can hold
/// throws `STORE_DAMAGED`.
struct TransferRow {
    let direction: TransferDirection
    private let row: Row

    init(_ row: Row, direction: TransferDirection) {
        self.row = row
        self.direction = direction
    }

    /// Returns the row of a transfer from the table that has it.
    ///
    /// - Throws: `TRANSFER_NOT_FOUND`.
    static func find(_ id: TransferID, in database: Database) throws -> TransferRow {
        for direction in [TransferDirection.upload, .download] {
            let sql = "\(direction.selection) WHERE transfer_id = ?"
            if let row = try Row.fetchOne(database, sql: sql, arguments: [id.text]) {
                return TransferRow(row, direction: direction)
            }
        }
        throw TransferError(.transferNotFound, operation: "look up", resource: id.text)
    }

    func text(_ column: String) -> String? { row[column] }
    func integer(_ column: String) -> Int64? { row[column] }
    func bytes(_ column: String) -> [UInt8]? { (row[column] as Data?).map(Array.init) }
    func time(_ column: String) -> Timestamp? {
        integer(column).map(Timestamp.init(millisecondsSinceEpoch:))
    }

    func required<Value>(_ column: String, _ value: Value?) throws -> Value {
        guard let value else {
            throw TransferError(
                .storeDamaged, operation: "read", resource: column,
                explanation: "A transfer record has a value that this version does not know.")
        }
        return value
    }

    func optional<Value>(_ column: String, _ parse: (String) -> Value?) throws -> Value? {
        guard let text = text(column) else { return nil }
        return try required(column, parse(text))
    }

    func digest(_ column: String) throws -> SHA256Digest? {
        guard let bytes = bytes(column) else { return nil }
        return try required(column, SHA256Digest(bytes: bytes))
    }

    func chunks(_ column: String) throws -> ChunkSet {
        try required(column, ChunkSet(serialized: bytes(column) ?? []))
    }

    var state: TransferState {
        get throws { try required("state", text("state").flatMap(TransferState.init(rawValue:))) }
    }
    var pauseReason: PauseReason? {
        get throws { try optional("pause_reason", PauseReason.init(rawValue:)) }
    }
    var control: ControlCommand {
        get throws {
            try required("control", text("control").flatMap(ControlCommand.init(rawValue:)))
        }
    }
    var savedHash: SavedHash? {
        guard let state = bytes("hash_state"), let offset = integer("hash_offset") else {
            return nil
        }
        return SavedHash(offsetBytes: offset, state: state)
    }

    var owner: OwnerRow? {
        guard let token = text("owner_token"), let heartbeat = time("owner_heartbeat") else {
            return nil
        }
        return OwnerRow(token: token, heartbeat: heartbeat)
    }

    /// Nil if no failed try is recorded.
    private var failedAttempt: FailedAttempt? {
        guard let number = integer("attempt_number") else { return nil }
        return FailedAttempt(
            // A cause from a newer kedge is unknown here; the message still explains it.
            cause: text("attempt_cause").flatMap(ConnectionCause.init(rawValue:)),
            host: text("attempt_host"), port: integer("attempt_port").map { Int($0) },
            attempt: Int(number), nextAttemptAt: time("next_attempt_at"))
    }

    var status: TransferStatus {
        get throws {
            var status = TransferStatus(
                id: try required("transfer_id", text("transfer_id").flatMap { TransferID($0) }),
                serverURL: try required("server_url", text("server_url")),
                createdAt: try required("created_at", time("created_at")))
            status.state = try state
            status.pauseReason = try pauseReason
            // A code from a newer kedge is unknown here; the message still explains it.
            status.lastErrorCode = text("last_error_code").flatMap(ErrorCode.init(rawValue:))
            status.lastErrorMessage = text("last_error_message")
            status.failedAttempt = failedAttempt
            status.lastServerStatus = integer("last_server_status").map { Int($0) }
            status.lastRequestID = text("last_request_id")
            status.lastGoodByteOffset = integer("last_good_byte_offset") ?? 0
            status.integrityFailureCount = Int(integer("integrity_failure_count") ?? 0)
            status.verification = try optional("verification", Verification.init(rawValue:))
            status.control = try control
            status.ownerToken = text("owner_token")
            status.updatedAt = try required("updated_at", time("updated_at"))
            return status
        }
    }
}

extension UploadTransfer {
    init(_ row: TransferRow) throws {
        self.init(
            status: try row.status, path: try row.required("path", row.text("path")),
            fileName: try row.required("file_name", row.text("file_name")),
            identity: SourceIdentity(
                byteCount: try row.required("file_size", row.integer("file_size")),
                modifiedNanoseconds: row.integer("modified_nanoseconds") ?? 0,
                changedNanoseconds: row.integer("changed_nanoseconds"),
                inode: UInt64(bitPattern: row.integer("inode") ?? 0)),
            mimeType: row.text("mime_type"),
            chunkSize: try row.required("chunk_size", row.integer("chunk_size")),
            idempotencyKey: try row.required("idempotency_key", row.text("idempotency_key")),
            uploadProtocol: try row.required(
                "dialect", row.text("dialect").flatMap(UploadProtocol.init(rawValue:))))
        uploadURL = row.text("upload_url")
        interopVersion = row.integer("interop_version")
        maxConcurrentChunks = row.integer("max_concurrent_chunks").map { Int($0) }
        uploadedChunks = try row.chunks("uploaded_chunks")
        sessionID = try row.optional("session_id") { SessionID($0) }
        givenSessionID = try row.optional("given_session_id") { SessionID($0) }
        adoptSessionID = try row.optional("adopt_session_id") { SessionID($0) }
        expiresAt = row.time("expires_at")
        remoteFileID = try row.optional("remote_file_id") { FileID($0) }
        fileHash = try row.digest("file_hash_sha256")
        savedHash = row.savedHash
        replaces = try row.optional("replaces") { TransferID($0) }
        replacedBy = try row.optional("replaced_by") { TransferID($0) }
    }
}

extension DownloadTransfer {
    init(_ row: TransferRow) throws {
        let fileID = try row.optional("remote_file_id") { FileID($0) }
        let url = row.text("remote_url")
        let pinned = row.integer("is_hash_pinned") == 1 ? try row.digest("expected_hash") : nil
        self.init(
            status: try row.status,
            reference: try row.required(
                "remote_url", fileID.map(RemoteReference.file) ?? url.map(RemoteReference.url)),
            destinationPath: try row.required("destination_path", row.text("destination_path")),
            tempPath: try row.required("temp_path", row.text("temp_path")),
            overwrites: row.integer("overwrites") == 1, pinnedHash: pinned,
            chunkSize: try row.required("chunk_size", row.integer("chunk_size")))
        expectedSize = row.integer("expected_size")
        expectedHash = try row.digest("expected_hash")
        let isWeak = row.integer("is_validator_weak") == 1
        validator = row.text("etag").map { RangeValidator(text: $0, isWeak: isWeak) }
        downloadedChunks = try row.chunks("downloaded_chunks")
        partialByteCount = row.integer("partial_bytes") ?? 0
        tempInode = row.integer("temp_inode").map(UInt64.init(bitPattern:))
        fileHash = try row.digest("file_hash_sha256")
        remoteChangeCount = Int(row.integer("remote_change_count") ?? 0)
        resumesUnverified = row.integer("resumes_unverified") == 1
        isURLRedacted = row.integer("is_url_redacted") == 1
        isDestinationInDoubt = row.integer("is_destination_in_doubt") == 1
    }
}
