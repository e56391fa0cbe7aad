/// Body of `POST /uploads/sessions` (R47–R51).
public struct CreateSessionRequest: Codable, Hashable, Sendable {
    /// Display name, refused unless ``FileName/isValid(_:)`` accepts it (R47).
    public var fileName: String
    /// Bytes of the whole file; 0 is a file without chunks (R48).
    public var fileSize: Int64
    /// Media type to store and give back; nil when the client does not know it (R49).
    public var mimeType: String?
    /// Wished bytes a chunk; nil leaves it to the server, whose answer counts (R50).
    public var chunkSize: Int64?
    /// What the whole file must have at finalize; nil when not known yet (R51).
    public var fileHashSha256: SHA256Digest?
    /// Text of the client's own, kept with the session, 8 KiB in all by default; nil is none.
    public var metadata: [String: String]?
    /// An expired session whose bytes to take over; nil starts empty.
    ///
    /// One that does not fit (other owner, size, chunk size or digest, or bytes already swept) is
    /// passed over without an error: ``CreateSessionResponse/receivedBytes`` tells.
    public var adoptSessionId: SessionID?

    /// The message for a file of known size; what is left out the server decides.
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

extension CreateSessionRequest {
    /// Reads the message; an error names the member that is wrong.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            fileName: try members.decode(String.self, forKey: .fileName),
            fileSize: try members.namingMember(.fileSize) {
                try members.decode(Int64.self, forKey: .fileSize)
            },
            mimeType: try members.decodeIfPresent(String.self, forKey: .mimeType),
            chunkSize: try members.namingMember(.chunkSize) {
                try members.decodeIfPresent(Int64.self, forKey: .chunkSize)
            },
            fileHashSha256: try members.decodeIfPresent(
                SHA256Digest.self, forKey: .fileHashSha256),
            metadata: try members.decodeIfPresent([String: String].self, forKey: .metadata),
            adoptSessionId: try members.decodeIfPresent(SessionID.self, forKey: .adoptSessionId))
    }
}

extension KeyedDecodingContainer {
    /// Foundation throws an error of its own for a number that does not fit its type, and it has no
    /// member's name.
    fileprivate func namingMember<Value>(_ key: Key, _ decode: () throws -> Value) throws -> Value {
        do {
            return try decode()
        } catch let error as DecodingError {
            throw error
        } catch {
            throw DecodingError.dataCorruptedError(
                forKey: key, in: self, debugDescription: String(describing: error))
        }
    }
}

/// Bounds that a server announces with each session (R54).
public struct SessionLimits: Codable, Hashable, Sendable {
    /// Smallest chunk size of a session, in bytes; a smaller wish becomes this.
    public var minChunkSize: Int64
    /// Largest chunk size of a session, in bytes; a larger wish becomes this.
    public var maxChunkSize: Int64
    /// Largest file taken, in bytes; above it `FILE_TOO_LARGE`.
    public var maxFileSize: Int64
    /// Chunks that one client should have in flight: advice, not enforced a session.
    public var maxConcurrentChunks: Int
    /// True when a body may end before its chunk does; servers of earlier versions say nothing.
    public var partialBodies: Bool?

    /// The limits of one server; they may differ after its next start.
    public init(
        minChunkSize: Int64, maxChunkSize: Int64, maxFileSize: Int64, maxConcurrentChunks: Int,
        partialBodies: Bool? = nil
    ) {
        self.minChunkSize = minChunkSize
        self.maxChunkSize = maxChunkSize
        self.maxFileSize = maxFileSize
        self.maxConcurrentChunks = maxConcurrentChunks
        self.partialBodies = partialBodies
    }
}

/// States of an upload session on the server.
public enum SessionState: String, CaseIterable, Codable, Sendable {
    /// Takes chunks.
    case open
    /// All bytes are verified and on their way to become a file; takes no more.
    case finalizing
    /// A file exists.
    case completed
    /// Given up by the server. This one never does: a refused finalize leaves it open.
    case failed
    /// Given up by the client; the bytes go.
    case canceled
    /// Idle past `expiresAt`; the bytes stay a grace period for adoption.
    case expired
}

/// Answer to `POST /uploads/sessions` (R52–R54).
public struct CreateSessionResponse: Codable, Hashable, Sendable {
    /// Unguessable, and part of every later address (R52).
    public var sessionId: SessionID
    /// When the session ends unless there is activity, which moves it on (R53).
    public var expiresAt: Timestamp
    /// `open`, unless a replayed request finds a session that has moved on.
    public var state: SessionState
    /// Bytes of the whole file, as declared.
    public var fileSize: Int64
    /// Bytes in every chunk but the last, frozen; may not be what was wished for (R28).
    public var chunkSize: Int64
    /// Chunks to send; 0 for a file of no bytes, which can be finalized at once (R29).
    public var totalChunks: Int
    /// Bytes already there: above zero after an adoption or a replayed request.
    public var receivedBytes: Int64
    /// What this server takes (R54).
    public var limits: SessionLimits
    /// Header fields that a chunk is to carry (R54); `Content-Digest` may stand in for the hash.
    public var requiredHeaders: [String]

    /// The answer for a session, new or found by its Idempotency-Key.
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
    /// The chunk, counted from 0.
    public var index: Int
    /// Digest of the whole chunk, also when only its rest was sent.
    public var sha256: SHA256Digest
    /// Durable bytes of the whole session, partial chunks included.
    public var receivedBytes: Int64
    /// Chunks of the session that are complete and durable.
    public var receivedChunkCount: Int
    /// Chunks of the whole file; nil while its size is unknown.
    public var totalChunks: Int?

    /// The promise that the chunk survives a crash (R59).
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
    /// The chunk, counted from 0.
    public var index: Int
    /// Durable bytes from the start of the chunk; above zero.
    public var receivedBytes: Int64
    /// Digest of those bytes; nil unless it was asked for.
    public var sha256: SHA256Digest?

    /// One chunk to go on with; a chunk without durable bytes is just missing.
    public init(index: Int, receivedBytes: Int64, sha256: SHA256Digest? = nil) {
        self.index = index
        self.receivedBytes = receivedBytes
        self.sha256 = sha256
    }
}

/// Body of `POST /uploads/sessions/{id}/finalize` (R63).
public struct FinalizeRequest: Codable, Hashable, Sendable {
    /// What the whole file must have, besides what was declared; nil asks for no more (R65).
    public var fileHashSha256: SHA256Digest?

    /// The message; without a digest it means the same as an empty body.
    public init(fileHashSha256: SHA256Digest? = nil) { self.fileHashSha256 = fileHashSha256 }
}
