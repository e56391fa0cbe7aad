/// Answer to `GET /uploads/sessions/{id}` (R61, R62).
public struct SessionStatus: Hashable, Sendable {
    /// The session that was asked for.
    public var sessionId: SessionID
    /// Never `expired`: that is answered with `SESSION_EXPIRED`.
    public var state: SessionState
    /// The label that was declared (R47).
    public var fileName: String
    /// Bytes of the whole file; nil while unknown, which no native session is.
    public var fileSize: Int64?
    /// Bytes in every chunk but the last, frozen for the session (R28).
    public var chunkSize: Int64
    /// Chunks of the whole file; nil while its size is unknown.
    public var totalChunks: Int?
    /// Chunks that are durable; they need not be sent again (R61).
    ///
    /// Kept as the set, so that the two forms it has on the wire cannot disagree.
    public var received: ChunkSet
    /// Digests of the chunks in ``received``, in the same order; nil unless they were asked for.
    public var receivedDigests: [SHA256Digest]?
    /// Durable bytes, partial chunks included.
    public var receivedBytes: Int64
    /// Interrupted chunks in rising order, each going on after its last durable byte.
    public var partialChunks: [PartialChunk]
    /// When the session ends unless there is activity, which moves it on (R53).
    public var expiresAt: Timestamp
    /// The digest declared, then the file's own; nil while neither is known.
    public var fileHashSha256: SHA256Digest?
    /// The file; nil until the session is completed (R32).
    public var remoteFileId: FileID?
    /// What the server takes; nil from servers of earlier versions.
    public var limits: SessionLimits?

    /// What is known of a session at one moment.
    public init(
        sessionId: SessionID, state: SessionState, fileName: String, fileSize: Int64?,
        chunkSize: Int64, totalChunks: Int?, received: ChunkSet, receivedBytes: Int64,
        partialChunks: [PartialChunk], expiresAt: Timestamp, fileHashSha256: SHA256Digest?,
        remoteFileId: FileID?, limits: SessionLimits? = nil
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
    }

    /// Indexes of the received chunks in rising order; made anew each time.
    public var receivedChunks: [Int] { received.indexes }

    /// The received chunks as inclusive runs `[first, last]` in rising order; made anew each time.
    public var receivedRanges: [[Int]] { received.ranges.map { [$0.lowerBound, $0.upperBound] } }
}
