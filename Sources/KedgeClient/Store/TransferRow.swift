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

/// A row of one of the client's tables, read by column.
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

    func text(_ column: TransferColumn) -> String? { row[column.rawValue] }
    func integer(_ column: TransferColumn) -> Int64? { row[column.rawValue] }
    func bytes(_ column: TransferColumn) -> [UInt8]? {
        (row[column.rawValue] as Data?).map(Array.init)
    }
    func time(_ column: TransferColumn) -> Timestamp? {
        integer(column).map(Timestamp.init(millisecondsSinceEpoch:))
    }

    func required<Value>(_ column: TransferColumn, _ value: Value?) throws -> Value {
        guard let value else {
            throw TransferError(
                .storeDamaged, operation: "read", resource: column.rawValue,
                explanation: "A transfer record has a value that this version does not know.")
        }
        return value
    }

    func requiredInt(_ column: TransferColumn) throws -> Int {
        Int(try required(column, integer(column)))
    }

    func optional<Value>(_ column: TransferColumn, _ parse: (String) -> Value?) throws -> Value? {
        guard let text = text(column) else { return nil }
        return try required(column, parse(text))
    }

    func digest(_ column: TransferColumn) throws -> SHA256Digest? {
        guard let bytes = bytes(column) else { return nil }
        return try required(column, SHA256Digest(bytes: bytes))
    }

    func chunks(_ column: TransferColumn) throws -> ChunkSet {
        try required(column, ChunkSet(serialized: bytes(column) ?? []))
    }

    var state: TransferState {
        get throws { try required(.state, text(.state).flatMap(TransferState.init(rawValue:))) }
    }
    var pauseReason: PauseReason? {
        get throws {
            let reason = try optional(.pauseReason, PauseReason.init(rawValue:))
            return reason != nil && integer(.signInNeeded) == 1 ? .signInNeeded : reason
        }
    }

    /// Value of the column `control` when no command waits.
    static let noCommand = "none"

    /// The command that waits for the owner.
    var command: TransferCommand? {
        get throws {
            let recorded = try required(.control, text(.control))
            guard recorded != Self.noCommand else { return nil }
            return try required(.control, TransferCommand(rawValue: recorded))
        }
    }

    var savedHash: SavedHash? {
        guard let state = bytes(.hashState), let offset = integer(.hashOffset) else { return nil }
        return SavedHash(offsetBytes: offset, state: state)
    }

    var owner: OwnerRow? {
        guard let token = text(.ownerToken), let heartbeat = time(.ownerHeartbeat) else {
            return nil
        }
        return OwnerRow(token: token, heartbeat: heartbeat)
    }

    /// Nil if no failed try is recorded.
    private var failedAttempt: FailedAttempt? {
        guard let number = integer(.attemptNumber) else { return nil }
        return FailedAttempt(
            // A cause from a newer kedge is unknown here; the message still explains it.
            cause: text(.attemptCause).flatMap(ConnectionCause.init(rawValue:)),
            host: text(.attemptHost), port: integer(.attemptPort).map { Int($0) },
            attempt: Int(number), nextAttemptAt: time(.nextAttemptAt))
    }

    var status: TransferStatus {
        get throws {
            var status = TransferStatus(
                id: try required(.transferID, text(.transferID).flatMap { TransferID($0) }),
                serverURL: try required(.serverURL, text(.serverURL)),
                createdAt: try required(.createdAt, time(.createdAt)))
            status.state = try state
            status.pauseReason = try pauseReason
            // A code from a newer kedge is unknown here; the message still explains it.
            status.lastErrorCode = text(.lastErrorCode).flatMap(ErrorCode.init(rawValue:))
            status.lastErrorMessage = text(.lastErrorMessage)
            status.failedAttempt = failedAttempt
            status.lastServerStatus = integer(.lastServerStatus).map { Int($0) }
            status.lastRequestID = text(.lastRequestID)
            status.lastGoodByteOffset = integer(.lastGoodByteOffset) ?? 0
            status.integrityFailureCount = Int(integer(.integrityFailureCount) ?? 0)
            status.readBackByteCount = integer(.readBackBytes) ?? 0
            status.verification = try optional(.verification, Verification.init(rawValue:))
            status.command = try command
            status.ownerToken = text(.ownerToken)
            status.updatedAt = try required(.updatedAt, time(.updatedAt))
            return status
        }
    }
}

extension UploadTransfer {
    init(_ row: TransferRow) throws {
        self.init(
            status: try row.status, path: try row.required(.path, row.text(.path)),
            fileName: try row.required(.fileName, row.text(.fileName)),
            identity: SourceIdentity(
                byteCount: try row.required(.fileSize, row.integer(.fileSize)),
                modifiedNanoseconds: row.integer(.modifiedNanoseconds) ?? 0,
                changedNanoseconds: row.integer(.changedNanoseconds),
                inode: UInt64(bitPattern: row.integer(.inode) ?? 0)),
            mimeType: row.text(.mimeType),
            chunkSize: try row.required(.chunkSize, row.integer(.chunkSize)),
            idempotencyKey: try row.required(.idempotencyKey, row.text(.idempotencyKey)),
            uploadProtocol: try row.required(
                .dialect, row.text(.dialect).flatMap(UploadProtocol.init(rawValue:))))
        metadata = try row.optional(.metadata, UploadMetadata.decode) ?? [:]
        sendsAllBytes = row.integer(.sendsAllBytes) == 1
        keepsModificationTime = row.integer(.keepsModificationTime) == 1
        uploadURL = row.text(.uploadURL)
        interopVersion = row.integer(.interopVersion)
        maxConcurrentChunks = row.integer(.maxConcurrentChunks).map { Int($0) }
        uploadedChunks = try row.chunks(.uploadedChunks)
        sessionID = try row.optional(.sessionID) { SessionID($0) }
        givenSessionID = try row.optional(.givenSessionID) { SessionID($0) }
        adoptSessionID = try row.optional(.adoptSessionID) { SessionID($0) }
        expiresAt = row.time(.expiresAt)
        link = row.text(.link)
        sessionLink = row.text(.sessionLink)
        isLinkRedacted = row.integer(.isLinkRedacted) == 1
        remoteFileID = try row.optional(.remoteFileID) { FileID($0) }
        fileHash = try row.digest(.fileHash)
        savedHash = row.savedHash
        replaces = try row.optional(.replaces) { TransferID($0) }
        replacedBy = try row.optional(.replacedBy) { TransferID($0) }
    }
}

extension DownloadTransfer {
    init(_ row: TransferRow) throws {
        let fileID = try row.optional(.remoteFileID) { FileID($0) }
        let url = row.text(.remoteURL)
        let pinned = row.integer(.isHashPinned) == 1 ? try row.digest(.expectedHash) : nil
        self.init(
            status: try row.status,
            reference: try row.required(
                .remoteURL, fileID.map(RemoteReference.file) ?? url.map(RemoteReference.url)),
            destinationPath: try row.required(.destinationPath, row.text(.destinationPath)),
            tempPath: try row.required(.tempPath, row.text(.tempPath)),
            overwrites: row.integer(.overwrites) == 1, pinnedHash: pinned,
            chunkSize: try row.required(.chunkSize, row.integer(.chunkSize)))
        expectedSize = row.integer(.expectedSize)
        expectedHash = try row.digest(.expectedHash)
        let isWeak = row.integer(.isValidatorWeak) == 1
        validator = row.text(.etag).map { RangeValidator(text: $0, isWeak: isWeak) }
        downloadedChunks = try row.chunks(.downloadedChunks)
        partialByteCount = row.integer(.partialBytes) ?? 0
        tempInode = row.integer(.tempInode).map(UInt64.init(bitPattern:))
        fileHash = try row.digest(.fileHash)
        remoteChangeCount = Int(row.integer(.remoteChangeCount) ?? 0)
        resumesUnverified = row.integer(.resumesUnverified) == 1
        keepsModificationTime = row.integer(.keepsModificationTime) == 1
        isURLRedacted = row.integer(.isURLRedacted) == 1
        isDestinationInDoubt = row.integer(.isDestinationInDoubt) == 1
    }
}
