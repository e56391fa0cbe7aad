package import KedgeHash
package import KedgeModel

/// The name of a session's bytes before they are a blob. Differs from the session's id, because an
/// adopting session takes over the bytes under their old name.
package struct StagingKey: Hashable, Sendable, CustomStringConvertible {
    package let text: String

    /// - Precondition: 32 lowercase hexadecimal digits; the key becomes a name on disk.
    package init(_ text: String) {
        precondition(SessionID.isWellFormed(text), "a staging key has 32 hexadecimal digits")
        self.text = text
    }

    package init(_ id: SessionID) { text = id.text }
    package var description: String { text }
}

/// A running hash in stored form: the number of hashed bytes, and the saved state.
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

/// One upload session as it is stored.
package struct SessionRecord: Hashable, Sendable {
    package var id: SessionID
    package var owner: OwnerID
    package var stagingKey: StagingKey
    package var fileName: String
    package var mimeType: String?
    /// Size in bytes; nil while unknown.
    package var fileSize: Int64?
    /// Fixed for the life of the session.
    package var chunkSize: Int64
    package var declaredDigest: SHA256Digest?
    package var metadata: [String: String]
    /// The partial uploads of a final upload, in order; nil for a session that receives its bytes
    /// from a client.
    package var sourceIDs: [SessionID]?
    package var state: SessionState
    package var createdAt: Timestamp
    package var expiresAt: Timestamp
    /// The hash of the contiguous prefix so far.
    package var prefix: HashCheckpoint?
    /// Set when finalizing begins.
    package var fileID: FileID?
    package var finalDigest: SHA256Digest?
    /// Maximum size of the file for this session; nil for that of the service.
    package var maxByteCount: Int64?
    /// Minimum size of the file for this session; nil for none.
    package var minByteCount: Int64?
    /// The token or principal that created the session; nil when unknown.
    package var createdBy: String?
    /// The link that created the session; nil for none.
    package var linkID: String?

    package init(
        id: SessionID, owner: OwnerID, stagingKey: StagingKey, fileName: String,
        mimeType: String?, fileSize: Int64?, chunkSize: Int64, declaredDigest: SHA256Digest?,
        metadata: [String: String], sourceIDs: [SessionID]? = nil, state: SessionState,
        createdAt: Timestamp, expiresAt: Timestamp, prefix: HashCheckpoint? = nil,
        fileID: FileID? = nil,
        finalDigest: SHA256Digest? = nil, maxByteCount: Int64? = nil, minByteCount: Int64? = nil,
        createdBy: String? = nil, linkID: String? = nil
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
        self.sourceIDs = sourceIDs
        self.state = state
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.prefix = prefix
        self.fileID = fileID
        self.finalDigest = finalDigest
        self.maxByteCount = maxByteCount
        self.minByteCount = minByteCount
        self.createdBy = createdBy
        self.linkID = linkID
    }

    package var layout: ChunkLayout { ChunkLayout(fileSize: fileSize, chunkSize: chunkSize) }

    /// The modification time that the client stored in the metadata; nil for none, and for text
    /// that is no time.
    package var modified: FileTime? { metadata[FileTime.metadataKey].flatMap { FileTime($0) } }
    /// The path that the client stored in the metadata, by which its file is listed; nil for none,
    /// and for one that cannot be stored: earlier versions accepted any text.
    package var path: String? {
        guard let path = metadata[FilePath.metadataKey], !path.isEmpty, FilePath.isStorable(path)
        else { return nil }
        return path
    }

    /// True when the new session can adopt this session's bytes, if they still exist: this session
    /// is past its expiry, and the declared digests do not differ. One rule for all stores.
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
    /// The byte store's location of the bytes; nil when it needs none.
    package var location: String?

    package init(index: Int, byteCount: Int64, digest: SHA256Digest, location: String? = nil) {
        self.index = index
        self.byteCount = byteCount
        self.digest = digest
        self.location = location
    }
}

/// The durable first bytes of a chunk, with the hash of exactly these bytes.
///
/// A chunk has at most two such records: its partial, whose bytes are at the chunk's own position,
/// and a *rival*, the start of another body, stored beside it. Acknowledged bytes of one are
/// discarded only after a complete body of the other has arrived with the digest that it declared.
package struct PartialRecord: Hashable, Sendable {
    package var index: Int
    /// Bytes from the start of the chunk; above zero.
    package var byteCount: Int64
    package var hashState: [UInt8]
    /// The digest declared for the whole chunk; nil when the bytes came by append.
    package var declaredDigest: SHA256Digest?
    /// The byte store's location of the bytes; nil when it needs none.
    package var location: String?
    /// True for a rival, which always has a declared digest.
    package var isRival: Bool
    /// True when a complete chunk with these bytes did not have the digest that a client declared.
    /// Set only for bytes that came by append: only that client's digest speaks against them, so
    /// appends continue after them. Other partials are discarded in this case.
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

/// A session with everything received for it.
package struct SessionProgress: Sendable {
    package var record: SessionRecord
    package var chunks: [CommittedChunk]
    /// Partials by rising index, followed by rivals.
    package var partials: [PartialRecord]
    /// Grows with every change; 0 in stores for a single node.
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
    /// The session that received it, which keeps the chunk list.
    package var sessionID: SessionID
    package var fileName: String
    package var mimeType: String?
    package var byteCount: Int64
    package var digest: SHA256Digest
    package var chunkSize: Int64
    package var createdAt: Timestamp
    /// The time of deletion; a deleted file gets the response "gone".
    package var deletedAt: Timestamp?
    /// The blob's location in the byte store; nil when it is named by its digest.
    package var location: String?
    /// The time since which its bytes are known to be damaged; nil while they are not.
    package var damagedAt: Timestamp?
    /// The uploader's path of the file; see ``SessionRecord/path``.
    package var path: String?
    /// The modification time of the uploaded file; see ``SessionRecord/modified``.
    package var modified: FileTime?

    package init(
        id: FileID, owner: OwnerID, sessionID: SessionID, fileName: String, mimeType: String?,
        byteCount: Int64, digest: SHA256Digest, chunkSize: Int64, createdAt: Timestamp,
        deletedAt: Timestamp? = nil, location: String? = nil, damagedAt: Timestamp? = nil,
        path: String? = nil, modified: FileTime? = nil
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
        self.path = path
        self.modified = modified
    }

    /// The name of the file's bytes.
    package var blob: BlobName {
        BlobName(digest: digest, byteCount: byteCount, location: location)
    }
}

extension FileRecord {
    /// The strong entity tag. It names the bytes, so equal files have equal tags.
    package var etag: String { "\"sha256-\(digest.hex)\"" }
}

/// The name of a finished file's bytes.
package struct BlobName: Hashable, Sendable {
    package var digest: SHA256Digest
    package var byteCount: Int64
    /// The location in the store; nil when the store names the blob by its digest.
    package var location: String?

    package init(digest: SHA256Digest, byteCount: Int64, location: String? = nil) {
        self.digest = digest
        self.byteCount = byteCount
        self.location = location
    }
}

/// A copy of a blob whose name a later upload of the same bytes has taken.
///
/// A matching size is no proof of either copy. The later copy is the blob. The earlier one stays
/// until a scrub has read the later one, and replaces it again if that one is damaged.
package struct SupersededBlob: Hashable, Sendable {
    package var digest: SHA256Digest
    package var byteCount: Int64
    /// The staging area that names the copy. In a store that names blobs by their digest, it is the
    /// area that took over the name; elsewhere, the area that the copy was.
    package var key: StagingKey
    /// The copy's location; nil where blobs are named by their digest.
    package var location: String?
    /// The time until which readers may still read it.
    package var keepUntil: Timestamp

    package init(
        digest: SHA256Digest, byteCount: Int64, key: StagingKey, location: String?,
        keepUntil: Timestamp
    ) {
        self.digest = digest
        self.byteCount = byteCount
        self.key = key
        self.location = location
        self.keepUntil = keepUntil
    }

    /// The copy as a blob of its own, for stores that record locations.
    package var blob: BlobName {
        BlobName(digest: digest, byteCount: byteCount, location: location)
    }
}
