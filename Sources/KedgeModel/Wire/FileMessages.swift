/// Answer to finalize and to `POST /files` (R66).
public struct FinalizeResponse: Codable, Hashable, Sendable {
    public var remoteFileId: FileID
    public var fileHashSha256: SHA256Digest
    public var size: Int64
    public var etag: String

    public init(remoteFileId: FileID, fileHashSha256: SHA256Digest, size: Int64, etag: String) {
        self.remoteFileId = remoteFileId
        self.fileHashSha256 = fileHashSha256
        self.size = size
        self.etag = etag
    }
}

/// Answer to finalize while long work runs (202).
public struct FinalizePending: Codable, Hashable, Sendable {
    public var sessionId: SessionID
    public var state: SessionState
    public var verifiedBytes: Int64

    public init(sessionId: SessionID, state: SessionState, verifiedBytes: Int64) {
        self.sessionId = sessionId
        self.state = state
        self.verifiedBytes = verifiedBytes
    }
}

/// Answer to `GET /files/{id}/meta` (R87).
public struct FileMeta: Codable, Hashable, Sendable {
    public var remoteFileId: FileID
    public var fileName: String
    public var size: Int64
    public var sha256: SHA256Digest
    public var mimeType: String?
    public var etag: String
    public var chunkSize: Int64
    public var createdAt: Timestamp

    public init(
        remoteFileId: FileID, fileName: String, size: Int64, sha256: SHA256Digest,
        mimeType: String?, etag: String, chunkSize: Int64, createdAt: Timestamp
    ) {
        self.remoteFileId = remoteFileId
        self.fileName = fileName
        self.size = size
        self.sha256 = sha256
        self.mimeType = mimeType
        self.etag = etag
        self.chunkSize = chunkSize
        self.createdAt = createdAt
    }
}

/// Answer to `GET /files/{id}/chunks`: lets a downloader verify, and fetch again, one chunk (R93).
public struct FileChunks: Codable, Hashable, Sendable {
    public var chunkSize: Int64
    public var sha256: [SHA256Digest]

    public init(chunkSize: Int64, sha256: [SHA256Digest]) {
        self.chunkSize = chunkSize
        self.sha256 = sha256
    }
}

/// One page of `GET /files`, newest first.
public struct FileList: Codable, Hashable, Sendable {
    public var files: [FileMeta]
    /// Opaque; send it as `after` for the next page. Absent on the last page.
    public var next: String?

    public init(files: [FileMeta], next: String?) {
        self.files = files
        self.next = next
    }
}
