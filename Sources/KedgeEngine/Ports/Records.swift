package import KedgeHash
package import KedgeModel

/// Who owns sessions and files. Another owner's id answers exactly like an unknown one.
package struct OwnerID: Hashable, Sendable, CustomStringConvertible {
    package let text: String
    package init(_ text: String) { self.text = text }
    package var description: String { text }

    /// The one owner while the server has no identities; allowed on loopback only.
    package static let anonymous = OwnerID("anonymous")
}

/// Names the bytes of a session before they are a blob. Kept apart from the session's id because an
/// adopting session takes over the bytes under their old name.
package struct StagingKey: Hashable, Sendable, CustomStringConvertible {
    package let text: String

    /// - Precondition: 32 lower-case hexadecimal digits; the key becomes a name on disk.
    package init(_ text: String) {
        precondition(SessionID.isWellFormed(text), "a staging key has 32 hexadecimal digits")
        self.text = text
    }

    package init(_ id: SessionID) { text = id.text }
    package var description: String { text }
}

/// A running hash as it is stored: how many bytes it has seen, and its saved state.
package struct HashCheckpoint: Hashable, Sendable {
    package var offset: Int64
    package var state: [UInt8]

    package init(offset: Int64, state: [UInt8]) {
        self.offset = offset
        self.state = state
    }

    package init(_ hasher: SHA256Hasher) {
        self.init(offset: hasher.byteCount, state: hasher.savedState)
    }
}

/// One upload session as the store keeps it.
package struct SessionRecord: Hashable, Sendable {
    package var id: SessionID
    package var owner: OwnerID
    package var stagingKey: StagingKey
    package var fileName: String
    package var mimeType: String?
    /// Size in bytes; nil while unknown.
    package var fileSize: Int64?
    /// Frozen for the life of the session (R28).
    package var chunkSize: Int64
    package var declaredDigest: SHA256Digest?
    package var metadata: [String: String]
    /// The sessions whose bytes this one gets, in their order; nil for one whose bytes come from a client.
    package var parts: [SessionID]?
    package var state: SessionState
    package var createdAt: Timestamp
    package var expiresAt: Timestamp
    /// The contiguous prefix of the file that is hashed so far.
    package var prefix: HashCheckpoint?
    /// Set when finalizing begins.
    package var fileID: FileID?
    package var finalDigest: SHA256Digest?

    package init(
        id: SessionID, owner: OwnerID, stagingKey: StagingKey, fileName: String,
        mimeType: String?, fileSize: Int64?, chunkSize: Int64, declaredDigest: SHA256Digest?,
        metadata: [String: String], parts: [SessionID]? = nil, state: SessionState,
        createdAt: Timestamp, expiresAt: Timestamp, prefix: HashCheckpoint? = nil,
        fileID: FileID? = nil,
        finalDigest: SHA256Digest? = nil
    ) {
        self.id = id
        self.owner = owner
        self.stagingKey = stagingKey
        self.fileName = fileName
        self.mimeType = mimeType
        self.fileSize = fileSize
        self.chunkSize = chunkSize
        self.declaredDigest = declaredDigest
        self.metadata = metadata
        self.parts = parts
        self.state = state
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.prefix = prefix
        self.fileID = fileID
        self.finalDigest = finalDigest
    }

    package var layout: ChunkLayout { ChunkLayout(fileSize: fileSize, chunkSize: chunkSize) }

    /// True when bytes of this session, if it still has them, can be those of the new one: its time is
    /// over, and nothing says that the file is another (R129). One rule for every store.
    package func isAdoptable(by new: SessionRecord) -> Bool {
        let isOver = state == .expired || (state == .open && expiresAt <= new.createdAt)
        let isSameFile =
            declaredDigest == nil || new.declaredDigest == nil
            || declaredDigest == new.declaredDigest
        return isOver && isSameFile && owner == new.owner && fileSize == new.fileSize
            && chunkSize == new.chunkSize
    }
}

/// A chunk whose bytes are durable and verified.
package struct CommittedChunk: Hashable, Sendable {
    package var index: Int
    package var byteCount: Int64
    package var digest: SHA256Digest
    /// What the byte store needs to find the bytes; nil when it needs nothing.
    package var location: String?

    package init(index: Int, byteCount: Int64, digest: SHA256Digest, location: String? = nil) {
        self.index = index
        self.byteCount = byteCount
        self.digest = digest
        self.location = location
    }
}

/// The first bytes of a chunk, durable, with the hash that has seen exactly them.
///
/// A chunk has at most two: its partial, whose bytes lie where the chunk will, and a *rival*, the beginning of another
/// body, which lies beside. Acknowledged bytes of the one go when a body of the other has come whole, with the
/// digest it named, and not before.
package struct PartialRecord: Hashable, Sendable {
    package var index: Int
    /// Bytes from the start of the chunk; above zero.
    package var byteCount: Int64
    package var hashState: [UInt8]
    /// The digest announced for the whole chunk; nil when the bytes came by append.
    package var declaredDigest: SHA256Digest?
    /// What the byte store needs to find the bytes; nil when it needs nothing.
    package var location: String?
    /// True for a rival, which always has a declared digest.
    package var isRival: Bool
    /// True when the bytes did not have the digest that a client named for them and their rest. Only of bytes
    /// that came by append: nothing says that they are wrong but that client, so appends go on after them. Others
    /// are discarded then.
    package var isInDoubt: Bool

    package init(
        index: Int, byteCount: Int64, hashState: [UInt8], declaredDigest: SHA256Digest?,
        location: String? = nil, isRival: Bool = false, isInDoubt: Bool = false
    ) {
        self.index = index
        self.byteCount = byteCount
        self.hashState = hashState
        self.declaredDigest = declaredDigest
        self.location = location
        self.isRival = isRival
        self.isInDoubt = isInDoubt
    }
}

/// A session with everything that was received for it.
package struct SessionProgress: Sendable {
    package var record: SessionRecord
    package var chunks: [CommittedChunk]
    /// By rising index; rivals after all the others.
    package var partials: [PartialRecord]
    /// Grows with every change; 0 in stores that only one node uses.
    package var revision: Int64

    package init(
        record: SessionRecord, chunks: [CommittedChunk], partials: [PartialRecord],
        revision: Int64 = 0
    ) {
        self.record = record
        self.chunks = chunks
        self.partials = partials
        self.revision = revision
    }
}

/// A finished, immutable file.
package struct FileRecord: Hashable, Sendable {
    package var id: FileID
    package var owner: OwnerID
    /// The session it came from; its chunk list is the file's.
    package var sessionID: SessionID
    package var fileName: String
    package var mimeType: String?
    package var byteCount: Int64
    package var digest: SHA256Digest
    package var chunkSize: Int64
    package var createdAt: Timestamp
    /// Set once the file is deleted; it then answers as gone.
    package var deletedAt: Timestamp?
    /// Where the byte store put the blob; nil when it is named by its digest.
    package var location: String?
    /// Since when its bytes are known to be damaged; nil while they are not.
    package var damagedAt: Timestamp?

    package init(
        id: FileID, owner: OwnerID, sessionID: SessionID, fileName: String, mimeType: String?,
        byteCount: Int64, digest: SHA256Digest, chunkSize: Int64, createdAt: Timestamp,
        deletedAt: Timestamp? = nil, location: String? = nil, damagedAt: Timestamp? = nil
    ) {
        self.id = id
        self.owner = owner
        self.sessionID = sessionID
        self.fileName = fileName
        self.mimeType = mimeType
        self.byteCount = byteCount
        self.digest = digest
        self.chunkSize = chunkSize
        self.createdAt = createdAt
        self.deletedAt = deletedAt
        self.location = location
        self.damagedAt = damagedAt
    }

    /// The name of its bytes.
    package var blob: BlobName {
        BlobName(digest: digest, byteCount: byteCount, location: location)
    }
}

extension FileRecord {
    /// The strong entity tag: it names the bytes, so equal files have equal tags.
    package var etag: String { "\"sha256-\(digest.hex)\"" }
}
