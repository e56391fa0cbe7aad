/// Body of `POST /uploads/sessions` (R47–R51).
public struct CreateSessionRequest: Codable, Hashable, Sendable {
    public var fileName: String
    public var fileSize: Int64
    public var mimeType: String?
    public var chunkSize: Int64?
    public var fileHashSha256: SHA256Digest?
    public var metadata: [String: String]?
    public var adoptSessionId: SessionID?

    public init(
        fileName: String, fileSize: Int64, mimeType: String? = nil, chunkSize: Int64? = nil,
        fileHashSha256: SHA256Digest? = nil, metadata: [String: String]? = nil,
        adoptSessionId: SessionID? = nil
    ) {
        self.fileName = fileName
        self.fileSize = fileSize
        self.mimeType = mimeType
        self.chunkSize = chunkSize
        self.fileHashSha256 = fileHashSha256
        self.metadata = metadata
        self.adoptSessionId = adoptSessionId
    }
}

/// Bounds that a server announces with each session (R54).
public struct SessionLimits: Codable, Hashable, Sendable {
    public var minChunkSize: Int64
    public var maxChunkSize: Int64
    public var maxFileSize: Int64
    public var maxConcurrentChunks: Int

    public init(
        minChunkSize: Int64, maxChunkSize: Int64, maxFileSize: Int64, maxConcurrentChunks: Int
    ) {
        self.minChunkSize = minChunkSize
        self.maxChunkSize = maxChunkSize
        self.maxFileSize = maxFileSize
        self.maxConcurrentChunks = maxConcurrentChunks
    }
}

/// States of an upload session on the server.
public enum SessionState: String, CaseIterable, Codable, Sendable {
    case open
    case finalizing
    case completed
    case failed
    case canceled
    case expired
}

/// Answer to `POST /uploads/sessions` (R52–R54).
public struct CreateSessionResponse: Codable, Hashable, Sendable {
    public var sessionId: SessionID
    public var expiresAt: Timestamp
    public var state: SessionState
    public var fileSize: Int64
    public var chunkSize: Int64
    public var totalChunks: Int
    /// Bytes already there: above zero after an adoption or a replayed request.
    public var receivedBytes: Int64
    public var limits: SessionLimits
    public var requiredHeaders: [String]

    public init(
        sessionId: SessionID, expiresAt: Timestamp, state: SessionState, fileSize: Int64,
        chunkSize: Int64, totalChunks: Int, receivedBytes: Int64, limits: SessionLimits,
        requiredHeaders: [String]
    ) {
        self.sessionId = sessionId
        self.expiresAt = expiresAt
        self.state = state
        self.fileSize = fileSize
        self.chunkSize = chunkSize
        self.totalChunks = totalChunks
        self.receivedBytes = receivedBytes
        self.limits = limits
        self.requiredHeaders = requiredHeaders
    }
}

/// Answer to `PUT /uploads/sessions/{id}/chunks/{index}`.
public struct ChunkReceipt: Codable, Hashable, Sendable {
    public var index: Int
    public var sha256: SHA256Digest
    public var receivedBytes: Int64
    public var receivedChunkCount: Int
    public var totalChunks: Int?

    public init(
        index: Int, sha256: SHA256Digest, receivedBytes: Int64, receivedChunkCount: Int,
        totalChunks: Int?
    ) {
        self.index = index
        self.sha256 = sha256
        self.receivedBytes = receivedBytes
        self.receivedChunkCount = receivedChunkCount
        self.totalChunks = totalChunks
    }
}

/// A chunk whose first bytes are durable on the server; sending goes on after them.
public struct PartialChunk: Codable, Hashable, Sendable {
    public var index: Int
    public var receivedBytes: Int64

    public init(index: Int, receivedBytes: Int64) {
        self.index = index
        self.receivedBytes = receivedBytes
    }
}

/// Answer to `GET /uploads/sessions/{id}` (R61, R62).
public struct SessionStatus: Codable, Hashable, Sendable {
    public var sessionId: SessionID
    public var state: SessionState
    public var fileName: String
    public var fileSize: Int64?
    public var chunkSize: Int64
    public var totalChunks: Int?
    public var receivedChunks: [Int]
    /// The same chunks as inclusive runs `[first, last]`.
    public var receivedRanges: [[Int]]
    public var receivedBytes: Int64
    public var partialChunks: [PartialChunk]
    public var expiresAt: Timestamp
    public var fileHashSha256: SHA256Digest?
    public var remoteFileId: FileID?

    public init(
        sessionId: SessionID, state: SessionState, fileName: String, fileSize: Int64?,
        chunkSize: Int64, totalChunks: Int?, received: ChunkSet, receivedBytes: Int64,
        partialChunks: [PartialChunk], expiresAt: Timestamp, fileHashSha256: SHA256Digest?,
        remoteFileId: FileID?
    ) {
        self.sessionId = sessionId
        self.state = state
        self.fileName = fileName
        self.fileSize = fileSize
        self.chunkSize = chunkSize
        self.totalChunks = totalChunks
        self.receivedChunks = received.indexes
        self.receivedRanges = received.ranges.map { [$0.lowerBound, $0.upperBound] }
        self.receivedBytes = receivedBytes
        self.partialChunks = partialChunks
        self.expiresAt = expiresAt
        self.fileHashSha256 = fileHashSha256
        self.remoteFileId = remoteFileId
    }
}

/// Body of `POST /uploads/sessions/{id}/finalize` (R63).
public struct FinalizeRequest: Codable, Hashable, Sendable {
    public var fileHashSha256: SHA256Digest?

    public init(fileHashSha256: SHA256Digest? = nil) { self.fileHashSha256 = fileHashSha256 }
}
