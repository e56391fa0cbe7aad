/// Response to `GET /uploads/sessions/{id}`.
public struct SessionStatus: Hashable, Sendable {
    /// The id of the session.
    public var sessionId: SessionID
    /// Never `expired`: the response is `SESSION_EXPIRED` then.
    public var state: SessionState
    /// The declared label.
    public var fileName: String
    /// Size of the file in bytes; nil while unknown. Always known in the native protocol.
    public var fileSize: Int64?
    /// Size of every chunk but the last, in bytes, fixed for the session.
    public var chunkSize: Int64
    /// Number of chunks of the file; nil while its size is unknown.
    public var totalChunks: Int?
    /// Durable chunks, which need not be sent again.
    ///
    /// A set, so that its two forms on the wire cannot disagree.
    public var received: ChunkSet
    /// Digests of the chunks in ``received``, in the same order; nil unless requested.
    public var receivedDigests: [SHA256Digest]?
    /// Number of durable bytes, partial chunks included.
    public var receivedBytes: Int64
    /// Interrupted chunks in rising order; each continues after its last durable byte.
    public var partialChunks: [PartialChunk]
    /// The time at which the session expires; activity extends it.
    public var expiresAt: Timestamp
    /// The declared digest, later the file's own; nil while neither is known.
    public var fileHashSha256: SHA256Digest?
    /// The id of the file; nil until the session is completed.
    public var remoteFileId: FileID?
    /// The limits of the server; nil from servers of earlier versions.
    public var limits: SessionLimits?
    /// Up to four files of the caller that the session may be; nil unless the request asked for
    /// them and the session has no bytes.
    public var storedFiles: [StoredFile]?

    /// Creates a snapshot of a session.
    public init(
        sessionId: SessionID, state: SessionState, fileName: String, fileSize: Int64?,
        chunkSize: Int64, totalChunks: Int?, received: ChunkSet, receivedBytes: Int64,
        partialChunks: [PartialChunk], expiresAt: Timestamp, fileHashSha256: SHA256Digest?,
        remoteFileId: FileID?, limits: SessionLimits? = nil,
        storedFiles: [StoredFile]? = nil
    ) {
        self.sessionId = sessionId
        self.state = state
        self.fileName = fileName
        self.fileSize = fileSize
        self.chunkSize = chunkSize
        self.totalChunks = totalChunks
        self.received = received
        self.receivedBytes = receivedBytes
        self.partialChunks = partialChunks
        self.expiresAt = expiresAt
        self.fileHashSha256 = fileHashSha256
        self.remoteFileId = remoteFileId
        self.limits = limits
        self.storedFiles = storedFiles
    }

    /// Indexes of the received chunks in rising order; computed on each access.
    public var receivedChunks: [Int] { received.indexes }

    /// Received chunks as inclusive runs `[first, last]` in rising order; computed on each access.
    public var receivedRanges: [[Int]] { received.ranges.map { [$0.lowerBound, $0.upperBound] } }
}
