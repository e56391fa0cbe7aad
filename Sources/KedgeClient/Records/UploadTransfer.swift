package import KedgeModel

/// A durable upload (R24–R36).
package struct UploadTransfer: Sendable, Equatable {
    package var status: TransferStatus
    /// Absolute path of the file; the one copy that is read (R111).
    package let path: String
    /// Name that the server is told.
    package let fileName: String
    /// Size, times of change and inode of the version that is uploaded (R118). Once the content was
    /// compared, its time of change is the one seen then.
    package var identity: SourceIdentity
    package let mimeType: String?
    /// How the server is spoken to. In other dialects than the native one ``TransferStatus/serverURL`` is
    /// where the upload was begun, as it was given.
    package let dialect: UploadDialect
    /// Where the upload is, once it was begun in another dialect than the native one.
    package var uploadURL: String?
    /// Version of the IETF draft in which it was begun; nil for the form without one.
    package var interopVersion: Int?
    /// The server's chunk size once there is a session; until then what will be asked for.
    package var chunkSize: Int64
    /// The server's limit of parallel chunks, once known.
    package var maxConcurrentChunks: Int?
    /// Chunks that the server confirmed (R30).
    package var uploadedChunks: ChunkSet
    package var sessionID: SessionID?
    /// The session that a person named (R13). It becomes ``sessionID`` once the file was compared with what
    /// the server has of it, and no other session is begun in its place.
    package var givenSessionID: SessionID?
    /// An expired session whose chunks a new session may take over (R129).
    package var adoptSessionID: SessionID?
    /// Makes creating the session repeatable; written before the call (R73).
    package var idempotencyKey: String
    /// When the session expires unless bytes arrive (R128).
    package var expiresAt: Timestamp?
    package var remoteFileID: FileID?
    /// SHA-256 of the whole file once computed (R33).
    package var fileHash: SHA256Digest?
    /// The running SHA-256 of the bytes before ``SavedHash/offsetBytes`` (R71).
    package var savedHash: SavedHash?
    /// The transfer of an older version of the same file that this one took over from (R100).
    package var replaces: TransferID?
    /// The transfer that took over because the file changed.
    package var replacedBy: TransferID?

    /// Chunks of the file (R29).
    package var layout: ChunkLayout {
        ChunkLayout(fileSize: identity.byteCount, chunkSize: chunkSize)
    }

    /// A new record for a file, in state `queued`.
    package init(
        status: TransferStatus, path: String, fileName: String, identity: SourceIdentity,
        mimeType: String?, chunkSize: Int64, idempotencyKey: String,
        dialect: UploadDialect = .native
    ) {
        self.status = status
        self.path = path
        self.fileName = fileName
        self.identity = identity
        self.mimeType = mimeType
        self.dialect = dialect
        self.chunkSize = chunkSize
        self.uploadedChunks = ChunkSet()
        self.idempotencyKey = idempotencyKey
    }
}

/// A running SHA-256 that can go on in another process.
package struct SavedHash: Sendable, Equatable {
    /// Number of bytes hashed, from the start of the file.
    package let offsetBytes: Int64
    /// The state as `SHA256Hasher` saves it.
    package let state: [UInt8]

    package init(offsetBytes: Int64, state: [UInt8]) {
        self.offsetBytes = offsetBytes
        self.state = state
    }
}
