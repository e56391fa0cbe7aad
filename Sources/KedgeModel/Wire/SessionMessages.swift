/// Body of `POST /uploads/sessions`.
public struct CreateSessionRequest: Codable, Hashable, Sendable {
    /// Display name, refused unless ``FileName/isValid(_:)`` accepts it.
    public var fileName: String
    /// Size of the file in bytes; 0 is a file without chunks.
    public var fileSize: Int64
    /// Media type to store and return; nil when the client does not know it.
    public var mimeType: String?
    /// Preferred chunk size in bytes; nil for the server's choice. The size in the response
    /// applies.
    public var chunkSize: Int64?
    /// Expected SHA-256 of the whole file; nil when it is not known yet.
    public var fileHashSha256: SHA256Digest?
    /// The client's own text, stored with the session, 8 KiB in total by default; nil for none.
    public var metadata: [String: String]?
    /// An expired session whose bytes to adopt; nil starts empty.
    ///
    /// One that does not fit (other owner, size, chunk size or digest, or bytes already swept) is
    /// ignored without an error. ``CreateSessionResponse/receivedBytes`` shows the outcome.
    public var adoptSessionId: SessionID?

    /// Creates the message for a file of known size; the server decides what is omitted.
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
    /// Decodes the message; an error names the invalid member.
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
    /// Adds the member's name to Foundation's error for a number that does not fit its type.
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

/// The limits that a server announces with each session.
public struct SessionLimits: Codable, Hashable, Sendable {
    /// Smallest chunk size of a session in bytes; smaller preferences are raised to it.
    public var minChunkSize: Int64
    /// Largest chunk size of a session in bytes; larger preferences are lowered to it.
    public var maxChunkSize: Int64
    /// Maximum file size in bytes; larger files fail with `FILE_TOO_LARGE`.
    public var maxFileSize: Int64
    /// Recommended number of chunks in flight per client; not enforced per session.
    public var maxConcurrentChunks: Int
    /// True when a body may end before its chunk does; nil from servers of earlier versions.
    public var partialBodies: Bool?

    /// Creates the limits of one server; they may change with its next start.
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
    /// Accepts chunks.
    case open
    /// All bytes are verified and become a file; accepts no more.
    case finalizing
    /// The file exists.
    case completed
    /// Failed on the server. This server never uses it: a refused finalize leaves the session open.
    case failed
    /// Canceled by the client; the bytes are discarded.
    case canceled
    /// Idle past `expiresAt`; the bytes stay for a grace period, for adoption.
    case expired
}

/// Response to `POST /uploads/sessions`.
public struct CreateSessionResponse: Codable, Hashable, Sendable {
    /// Unguessable id, part of every later URL.
    public var sessionId: SessionID
    /// The time at which the session expires; activity extends it.
    public var expiresAt: Timestamp
    /// `open`, unless a replayed request finds a session that has progressed.
    public var state: SessionState
    /// Size of the file in bytes, as declared.
    public var fileSize: Int64
    /// Size of every chunk but the last, in bytes, fixed for the session; may differ from the
    /// preference.
    public var chunkSize: Int64
    /// Number of chunks; 0 for an empty file, which can be finalized at once.
    public var totalChunks: Int
    /// Number of bytes already received: above zero after an adoption or a replayed request.
    public var receivedBytes: Int64
    /// The limits of this server.
    public var limits: SessionLimits
    /// Header fields that a chunk must have; `Content-Digest` may replace the hash.
    public var requiredHeaders: [String]
    /// Up to four files of the caller that the session may be; nil unless the request asked for
    /// them and the session has no bytes.
    public var storedFiles: [StoredFile]?
    /// Address of the session with a link that permits all requests about the session, so that the
    /// upload can go on after the caller's own credential has expired; nil where that one lasts.
    public var uploadLink: String?

    /// Creates the response for a session, new or found by its Idempotency-Key.
    public init(
        sessionId: SessionID, expiresAt: Timestamp, state: SessionState, fileSize: Int64,
        chunkSize: Int64, totalChunks: Int, receivedBytes: Int64, limits: SessionLimits,
        requiredHeaders: [String], storedFiles: [StoredFile]? = nil, uploadLink: String? = nil
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
        self.storedFiles = storedFiles
        self.uploadLink = uploadLink
    }
}

/// One unfinished session in the response to `GET /uploads/sessions`.
public struct SessionSummary: Codable, Hashable, Sendable {
    /// The id for every later request.
    public var sessionId: SessionID
    /// The uploader's label; never a path.
    public var fileName: String
    /// The path that the uploader stored in the metadata; nil for none.
    public var path: String?
    /// Size of the file in bytes; nil while it is unknown.
    public var fileSize: Int64?
    /// Number of durable bytes, partial chunks included; nil for sessions of very many chunks,
    /// whose status has it.
    public var receivedBytes: Int64?
    /// `open` or `finalizing`.
    public var state: SessionState
    /// The time at which the session was created.
    public var createdAt: Timestamp
    /// The time at which the session expires; activity extends it.
    public var expiresAt: Timestamp

    /// Creates the summary of a session that is not completed.
    public init(
        sessionId: SessionID, fileName: String, path: String?, fileSize: Int64?,
        receivedBytes: Int64?, state: SessionState, createdAt: Timestamp, expiresAt: Timestamp
    ) {
        self.sessionId = sessionId
        self.fileName = fileName
        self.path = path
        self.fileSize = fileSize
        self.receivedBytes = receivedBytes
        self.state = state
        self.createdAt = createdAt
        self.expiresAt = expiresAt
    }
}

/// One page of `GET /uploads/sessions`: the caller's sessions that are `open` or `finalizing`,
/// newest first.
public struct SessionList: Codable, Hashable, Sendable {
    /// The sessions, at most `limit`.
    public var sessions: [SessionSummary]
    /// Opaque cursor; send it as `after` for the next page. Absent on the last page.
    public var next: String?

    /// Creates a page with the cursor of the next one.
    public init(sessions: [SessionSummary], next: String?) {
        self.sessions = sessions
        self.next = next
    }
}

/// Response to `PUT /uploads/sessions/{id}/chunks/{index}`.
public struct ChunkReceipt: Codable, Hashable, Sendable {
    /// Index of the chunk, from 0.
    public var index: Int
    /// Digest of the whole chunk, also when only its rest was sent.
    public var sha256: SHA256Digest
    /// Number of durable bytes of the session, partial chunks included.
    public var receivedBytes: Int64
    /// Number of chunks of the session that are complete and durable.
    public var receivedChunkCount: Int
    /// Number of chunks of the file; nil while its size is unknown.
    public var totalChunks: Int?

    /// Creates the acknowledgement of a chunk that survives a crash.
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

/// A chunk whose first bytes are durable on the server; the client continues after them.
public struct PartialChunk: Codable, Hashable, Sendable {
    /// Index of the chunk, from 0.
    public var index: Int
    /// Number of durable bytes from the start of the chunk; above zero.
    public var receivedBytes: Int64
    /// Digest of those bytes; nil unless requested.
    public var sha256: SHA256Digest?

    /// Creates a partial chunk; a chunk without durable bytes is simply missing.
    public init(index: Int, receivedBytes: Int64, sha256: SHA256Digest? = nil) {
        self.index = index
        self.receivedBytes = receivedBytes
        self.sha256 = sha256
    }
}

/// Body of `POST /uploads/sessions/{id}/finalize`.
public struct FinalizeRequest: Codable, Hashable, Sendable {
    /// Expected SHA-256 of the whole file, besides the declared one; nil for no further check.
    public var fileHashSha256: SHA256Digest?

    /// Creates the message; without a digest it is equivalent to an empty body.
    public init(fileHashSha256: SHA256Digest? = nil) { self.fileHashSha256 = fileHashSha256 }
}
