package import KedgeModel

/// A durable upload.
package struct UploadTransfer: Sendable, Equatable {
    package var status: TransferStatus
    /// Absolute path of the file. The upload reads it in place and makes no copy.
    package let path: String
    /// File name sent to the server.
    package let fileName: String
    /// Size, times of change and inode of the uploaded version. A comparison of the content updates
    /// the time of change.
    package var identity: SourceIdentity
    package let mimeType: String?
    /// Text to store with the file on the server, by key.
    package var metadata: [String: String] = [:]
    /// Whether the server stores the modification time of the file, too.
    package var keepsModificationTime = false
    /// The upload protocol. For other protocols than the native one, ``TransferStatus/serverURL``
    /// is the creation URL as it was given.
    package let uploadProtocol: UploadProtocol
    /// True if the bytes are sent even if the server has the same bytes of this user.
    package var sendsAllBytes = false
    /// URL of the upload once created, with another protocol than the native one.
    package var uploadURL: String?
    /// Interop version of the IETF draft used for the upload; nil without one.
    package var interopVersion: Int64?
    /// Chunk size of the session; before there is one, the size to request.
    package var chunkSize: Int64
    /// The server's limit of concurrent chunks, once known.
    package var maxConcurrentChunks: Int?
    /// Chunks that the server confirmed.
    package var uploadedChunks: ChunkSet
    package var sessionID: SessionID?
    /// The session named by the user. It becomes ``sessionID`` once the file was compared with the
    /// bytes that the server has. No other session replaces it.
    package var givenSessionID: SessionID?
    /// An expired session whose chunks a new session may adopt.
    package var adoptSessionID: SessionID?
    /// Text of the link that permits the upload; nil for an upload with the user's token. Gone once
    /// the upload has ended.
    package var link: String?
    /// Text of the link of the session; nil without one. Gone once the upload has ended.
    package var sessionLink: String?
    /// Whether the upload has ended and had a link that it cannot do without.
    package var isLinkRedacted = false
    /// Makes session creation idempotent; written before the request.
    package var idempotencyKey: String
    /// Time when the session expires unless bytes arrive.
    package var expiresAt: Timestamp?
    package var remoteFileID: FileID?
    /// SHA-256 of the whole file, once computed.
    package var fileHash: SHA256Digest?
    /// The running SHA-256 of the bytes before ``SavedHash/offsetBytes``.
    package var savedHash: SavedHash?
    /// The transfer of an older version of the file, which this one replaced.
    package var replaces: TransferID?
    /// The transfer that replaced this one because the file changed.
    package var replacedBy: TransferID?

    /// The metadata to send. A time that the user has set takes precedence over that of the file.
    var sentMetadata: [String: String] {
        guard keepsModificationTime else { return metadata }
        let time = FileTime(nanosecondsSinceEpoch: identity.modifiedNanoseconds)
        return metadata.merging([FileTime.metadataKey: time.text]) { own, _ in own }
    }

    /// Chunks of the file.
    package var layout: ChunkLayout {
        ChunkLayout(fileSize: identity.byteCount, chunkSize: chunkSize)
    }

    /// Whether the upload is completed and no chunk of it was sent.
    package var usedStoredBytes: Bool {
        uploadProtocol == .native && status.state == .completed && identity.byteCount > 0
            && uploadedChunks.count == 0
    }

    /// Creates a record in state `queued`.
    package init(
        status: TransferStatus, path: String, fileName: String, identity: SourceIdentity,
        mimeType: String?, chunkSize: Int64, idempotencyKey: String,
        uploadProtocol: UploadProtocol = .native
    ) {
        self.status = status
        self.path = path
        self.fileName = fileName
        self.identity = identity
        self.mimeType = mimeType
        self.uploadProtocol = uploadProtocol
        self.chunkSize = chunkSize
        self.uploadedChunks = ChunkSet()
        self.idempotencyKey = idempotencyKey
    }
}

/// A running SHA-256 that another process can continue.
package struct SavedHash: Sendable, Equatable {
    /// Number of bytes hashed, from the start of the file or chunk.
    package let offsetBytes: Int64
    /// The state saved by `SHA256Hasher`.
    package let state: [UInt8]

    package init(offsetBytes: Int64, state: [UInt8]) {
        self.offsetBytes = offsetBytes
        self.state = state
    }
}
