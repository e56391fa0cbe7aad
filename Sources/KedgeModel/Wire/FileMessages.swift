/// Response to finalize and to `POST /files`.
public struct FinalizeResponse: Codable, Hashable, Sendable {
    /// The id of the file; repeated requests return the same one.
    public var remoteFileId: FileID
    /// SHA-256 that the server computed over the whole file, for the client to compare.
    public var fileHashSha256: SHA256Digest
    /// Size of the file in bytes.
    public var size: Int64
    /// Strong entity tag with its quotes, as in `GET /files/{id}`.
    public var etag: String

    /// Creates the response for a durable, visible file.
    public init(remoteFileId: FileID, fileHashSha256: SHA256Digest, size: Int64, etag: String) {
        self.remoteFileId = remoteFileId
        self.fileHashSha256 = fileHashSha256
        self.size = size
        self.etag = etag
    }
}

/// Response to a request that created or continued a resumable upload that is not complete.
public struct UploadReceipt: Codable, Hashable, Sendable {
    /// The id of the upload in every protocol.
    public var sessionId: SessionID
    /// Number of durable bytes from the start of the file.
    public var receivedBytes: Int64

    /// Creates the response for durable bytes.
    public init(sessionId: SessionID, receivedBytes: Int64) {
        self.sessionId = sessionId
        self.receivedBytes = receivedBytes
    }
}

/// Response to finalize while it is in progress (202).
public struct FinalizePending: Codable, Hashable, Sendable {
    /// The session to finalize again after `Retry-After`.
    public var sessionId: SessionID
    /// `open` from this server: the result is not decided yet.
    public var state: SessionState
    /// Number of bytes from the start of the file that are hashed.
    public var verifiedBytes: Int64

    /// Creates the response while the whole-file hash is behind.
    public init(sessionId: SessionID, state: SessionState, verifiedBytes: Int64) {
        self.sessionId = sessionId
        self.state = state
        self.verifiedBytes = verifiedBytes
    }
}

/// Response to `GET /files/{id}/meta`.
public struct FileMeta: Codable, Hashable, Sendable {
    /// The id for `GET /files/{id}`.
    public var remoteFileId: FileID
    /// The uploader's label; never a path, see ``FileName``.
    public var fileName: String
    /// Size of the file in bytes.
    public var size: Int64
    /// SHA-256 that downloaded bytes must have before they are promoted.
    public var sha256: SHA256Digest
    /// The type that the uploader declared, never sniffed; nil when it declared none.
    public var mimeType: String?
    /// Strong entity tag with its quotes, for `If-Range` and `If-Match`.
    public var etag: String
    /// Chunk size of the upload in bytes, which the digests of ``FileChunks`` use.
    public var chunkSize: Int64
    /// The time at which the upload was finalized.
    public var createdAt: Timestamp
    /// The time since which the server knows that its copy is damaged; nil for an intact file. Only
    /// lists contain it: any other request for such a file fails with `FILE_DAMAGED`.
    public var damagedAt: Timestamp?
    /// The path that the uploader stored in the metadata; nil for none. Untrusted: check it with
    /// ``FilePath/isSafe(_:)`` before it becomes a file.
    public var path: String?
    /// The modification time that the uploader stored in the metadata, as RFC 3339 text; nil for
    /// none. Untrusted: it may be any text.
    public var mtime: String?

    /// Creates the description of a finished file. Except for ``damagedAt``, it never changes.
    public init(
        remoteFileId: FileID, fileName: String, size: Int64, sha256: SHA256Digest,
        mimeType: String?, etag: String, chunkSize: Int64, createdAt: Timestamp,
        damagedAt: Timestamp? = nil, path: String? = nil, mtime: String? = nil
    ) {
        self.remoteFileId = remoteFileId
        self.fileName = fileName
        self.size = size
        self.sha256 = sha256
        self.mimeType = mimeType
        self.etag = etag
        self.chunkSize = chunkSize
        self.createdAt = createdAt
        self.damagedAt = damagedAt
        self.path = path
        self.mtime = mtime
    }
}

/// Response to `GET /files/{id}/chunks`, with which a client verifies single chunks and fetches
/// them again.
public struct FileChunks: Codable, Hashable, Sendable {
    /// Size of every chunk in bytes, except that the last may be short.
    public var chunkSize: Int64
    /// Digest of each chunk, in order; empty for an empty file.
    public var sha256: [SHA256Digest]

    /// Creates the complete list. It is not paged, because ``ChunkLayout/maxChunkCount`` bounds it.
    public init(chunkSize: Int64, sha256: [SHA256Digest]) {
        self.chunkSize = chunkSize
        self.sha256 = sha256
    }
}

/// A file of the caller that has the size and chunk size of an empty session. If the bytes to
/// upload are the same, the session is finalized with this file's digest, and no byte is sent.
public struct StoredFile: Codable, Hashable, Sendable {
    /// The id of the file, for `GET /files/{id}/chunks`.
    public var remoteFileId: FileID
    /// SHA-256 of the whole file.
    public var fileHashSha256: SHA256Digest
    /// SHA-256 of its first chunk, which differs for most files with other bytes.
    public var firstChunkSha256: SHA256Digest

    /// Creates the description of a file that a session may become.
    public init(
        remoteFileId: FileID, fileHashSha256: SHA256Digest, firstChunkSha256: SHA256Digest
    ) {
        self.remoteFileId = remoteFileId
        self.fileHashSha256 = fileHashSha256
        self.firstChunkSha256 = firstChunkSha256
    }
}

/// One page of `GET /files`: newest first, or by path when a prefix was requested.
public struct FileList: Codable, Hashable, Sendable {
    /// The files, at most `limit`.
    public var files: [FileMeta]
    /// Opaque cursor; send it as `after` for the next page. Absent on the last page.
    public var next: String?

    /// Creates a page with the cursor of the next one.
    public init(files: [FileMeta], next: String?) {
        self.files = files
        self.next = next
    }
}
