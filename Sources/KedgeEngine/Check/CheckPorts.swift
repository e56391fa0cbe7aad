package import KedgeFiles
package import KedgeModel

/// Bytes that the store keeps under a name.
package enum StoredBytes: Hashable, Sendable {
    case staging(StagingKey)
    case blob(SHA256Digest)
    /// A copy whose name the bytes of the staging area have taken; see ``SupersededBlob``.
    case superseded(SHA256Digest, by: StagingKey)
}

/// A name that a walk over the store comes by.
package enum StoredEntry: Hashable, Sendable {
    case bytes(StoredBytes)
    /// Put aside by an earlier recovery or repair.
    case quarantined(String)
    /// Made by the service for a moment; a stop may leave it.
    case leftover(String)
    /// None of the names that the store gives.
    case unknown(String)
}

/// What a check reads of the rows, in pages, so that memory does not grow with the store. Only
/// ``MetadataError`` is thrown, and nothing is changed.
package protocol CheckedRows: Sendable {
    /// What the database says of its own state; empty when it is whole.
    func databaseFaults() async throws -> [CheckFinding]
    /// The place whose bytes the rows are about; nil when nobody has said it yet.
    func bytePlace() async throws -> String?
    /// Bytes that the rows promise in staging areas and blobs, each blob counted once.
    func promisedByteCount() async throws -> Int64
    /// Sessions whose bytes are in a staging area, by id, from after the given one.
    func sessionsWithBytes(after: SessionID?, limit: Int) async throws -> [SessionRecord]
    /// The same session as it is now; nil when it has no bytes in a staging area any more.
    func sessionWithBytes(_ id: SessionID) async throws -> SessionRecord?
    /// Committed chunks of a session, by index, from the given one on.
    func chunks(of id: SessionID, from index: Int, limit: Int) async throws -> [CommittedChunk]
    /// Partials of a session, by index, from the given one on.
    func partials(of id: SessionID, from index: Int, limit: Int) async throws -> [PartialRecord]
    /// Files that are not deleted, by digest and id, from after the given one.
    func liveFiles(after: FileRecord?, limit: Int) async throws -> [FileRecord]
    /// The same file as it is now; nil when it is deleted.
    func liveFile(_ id: FileID) async throws -> FileRecord?
    /// True while a session, a file or the garbage names these bytes, or a blob is made of them.
    func isKnown(_ bytes: StoredBytes) async throws -> Bool
}

/// What a check reads of the bytes. Only ``ByteStoreError`` is thrown, besides what a closure throws and
/// `CancellationError`, and nothing is changed: not even a missing directory is made.
package protocol CheckedBytes: Sendable {
    /// True when others may change rows and bytes while they are looked at.
    var isShared: Bool { get }
    /// Hands out every name, what is quarantined first, in no other order. A staging area may come more
    /// than once.
    func forEachEntry(_ body: (StoredEntry) async throws -> Void) async throws
    /// True while there are bytes that a walk would give this name.
    func hasEntry(_ bytes: StoredBytes) async throws -> Bool
    /// Size of a blob; nil when there is none.
    func byteCount(of blob: BlobName) async throws -> Int64?
    /// Opens a blob for reading.
    ///
    /// - Throws: `notFound` when there is none.
    func open(_ blob: BlobName) async throws -> any BlobReader
    /// Looks at the bytes of a session on their way in.
    func staging(of session: SessionRecord) async throws -> any CheckedStaging
}

/// The bytes of one session on their way in, as a check sees them.
package protocol CheckedStaging: Sendable {
    /// False when there is nothing of which they could be a part.
    var isPresent: Bool { get }
    /// False when the store does not tell which chunks it has; all are taken to be there then.
    var isListed: Bool { get }
    /// The chunks of these, in order of their index, that are not there as recorded.
    func missing(of chunks: [CommittedChunk]) async throws -> ChunkSet
    /// The chunks of whose partials the bytes are not there as recorded.
    func missing(of partials: [PartialRecord]) async throws -> ChunkSet
    /// Opens the bytes for reading by their offset in the file; nil when the store lends them to nobody.
    ///
    /// - Parameter first: The first of the recorded chunks.
    func open(first: CommittedChunk?) async throws -> (any BlobReader)?
}

/// A byte store that can put blobs aside, too.
package protocol RepairableBytes: LocalByteStore {
    /// Moves a blob that no row knows out of the way without destroying it; an absent one is no
    /// error.
    func quarantine(_ digest: SHA256Digest) async throws
    /// The same for a superseded copy.
    func quarantine(_ digest: SHA256Digest, supersededBy key: StagingKey) async throws
}

/// The stores that a repair changes; the check holds them for itself.
package struct RepairedStores: Sendable {
    package var metadata: any MetadataStore
    /// Nil where bytes that no row knows are named and left where they are.
    package var bytes: (any RepairableBytes)?
    /// Tells since when a file is known to be damaged.
    package var clock: any WallClock

    package init(
        metadata: any MetadataStore, bytes: (any RepairableBytes)?,
        clock: any WallClock = SystemWallClock()
    ) {
        self.metadata = metadata
        self.bytes = bytes
        self.clock = clock
    }
}
