/// Answer to finalize and to `POST /files` (R66).
public struct FinalizeResponse: Codable, Hashable, Sendable {
    /// Names the file from now on; asking again gives the same one.
    public var remoteFileId: FileID
    /// SHA-256 that the server computed over the whole file; the client compares it (R65, R78).
    public var fileHashSha256: SHA256Digest
    /// Bytes of the whole file.
    public var size: Int64
    /// Strong entity tag with its quotes, as `GET /files/{id}` sends it.
    public var etag: String

    /// The answer for a file that is durable and visible.
    public init(remoteFileId: FileID, fileHashSha256: SHA256Digest, size: Int64, etag: String) {
        self.remoteFileId = remoteFileId
        self.fileHashSha256 = fileHashSha256
        self.size = size
        self.etag = etag
    }
}

/// Answer to a request that began or went on with a resumable upload when more bytes are to come.
public struct UploadReceipt: Codable, Hashable, Sendable {
    /// Names the upload in every dialect.
    public var sessionId: SessionID
    /// Bytes from the start of the file that are durable.
    public var receivedBytes: Int64

    /// The answer for bytes that are on stable storage.
    public init(sessionId: SessionID, receivedBytes: Int64) {
        self.sessionId = sessionId
        self.receivedBytes = receivedBytes
    }
}

/// Answer to finalize while long work runs (202).
public struct FinalizePending: Codable, Hashable, Sendable {
    /// The session to finalize again after `Retry-After`.
    public var sessionId: SessionID
    /// `open` from this server: nothing has been decided yet.
    public var state: SessionState
    /// Bytes from the start of the file that the whole-file hash has seen.
    public var verifiedBytes: Int64

    /// The answer while the whole-file hash is behind.
    public init(sessionId: SessionID, state: SessionState, verifiedBytes: Int64) {
        self.sessionId = sessionId
        self.state = state
        self.verifiedBytes = verifiedBytes
    }
}

/// Answer to `GET /files/{id}/meta` (R87).
public struct FileMeta: Codable, Hashable, Sendable {
    /// What `GET /files/{id}` takes.
    public var remoteFileId: FileID
    /// The label that the uploader gave (R47); never a path, see ``FileName``.
    public var fileName: String
    /// Bytes of the whole file.
    public var size: Int64
    /// What the downloaded bytes must have before they are promoted (R94).
    public var sha256: SHA256Digest
    /// As the uploader declared it, never sniffed; nil when it declared none.
    public var mimeType: String?
    /// Strong entity tag with its quotes, for `If-Range` and `If-Match` (R99).
    public var etag: String
    /// Bytes a chunk of the upload had; the digests of ``FileChunks`` follow it.
    public var chunkSize: Int64
    /// When the upload was finalized.
    public var createdAt: Timestamp
    /// Since when the server knows that its copy is damaged; nil for a file that can be read. Told in lists
    /// alone: everything else that is asked of such a file answers `FILE_DAMAGED`.
    public var damagedAt: Timestamp?

    /// Describes a finished file; but for ``damagedAt``, none of it ever changes.
    public init(
        remoteFileId: FileID, fileName: String, size: Int64, sha256: SHA256Digest,
        mimeType: String?, etag: String, chunkSize: Int64, createdAt: Timestamp,
        damagedAt: Timestamp? = nil
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
    }
}

/// Answer to `GET /files/{id}/chunks`: lets a downloader verify, and fetch again, one chunk (R93).
public struct FileChunks: Codable, Hashable, Sendable {
    /// Bytes in every chunk but the last, which may be short.
    public var chunkSize: Int64
    /// Digest of each chunk in the order of the file; empty for a file of no bytes.
    public var sha256: [SHA256Digest]

    /// The whole list: digests are not paged, ``ChunkLayout/maxChunkCount`` bounds them.
    public init(chunkSize: Int64, sha256: [SHA256Digest]) {
        self.chunkSize = chunkSize
        self.sha256 = sha256
    }
}

/// One page of `GET /files`, newest first.
public struct FileList: Codable, Hashable, Sendable {
    /// At most as many as `limit` asked for.
    public var files: [FileMeta]
    /// Opaque; send it as `after` for the next page. Absent on the last page.
    public var next: String?

    /// A page, and the cursor of the one after it.
    public init(files: [FileMeta], next: String?) {
        self.files = files
        self.next = next
    }
}
