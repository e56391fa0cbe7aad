package import KedgeFiles
package import KedgeModel

/// Bytes that the store keeps under a name.
package enum StoredBytes: Hashable, Sendable {
    case staging(StagingKey)
    case blob(SHA256Digest)
    /// A copy whose name was taken over by the bytes of the staging area; see ``SupersededBlob``.
    case superseded(SHA256Digest, by: StagingKey)
}

/// A name found by a walk over the store.
package enum StoredEntry: Hashable, Sendable {
    case bytes(StoredBytes)
    /// Quarantined by an earlier recovery or repair.
    case quarantined(String)
    /// A temporary file of the service, left behind by a stop.
    case leftover(String)
    /// A name that the store never uses.
    case unknown(String)
}

/// The rows as a check reads them: in pages, so that memory does not grow with the store. Changes
/// nothing and throws only ``MetadataError``.
package protocol CheckedRows: Sendable {
    /// The faults that the database reports about itself; empty when it is intact.
    func databaseFaults() async throws -> [CheckFinding]
    /// The byte store that the rows belong to; nil when none was recorded yet.
    func byteStoreIdentity() async throws -> String?
    /// Number of bytes that the rows expect in staging areas and blobs, each blob counted once.
    func promisedByteCount() async throws -> Int64
    /// Sessions whose bytes are in a staging area, ordered by id, after the given one.
    func sessionsWithBytes(after: SessionID?, limit: Int) async throws -> [SessionRecord]
    /// The session's current record; nil when it no longer has bytes in a staging area.
    func sessionWithBytes(_ id: SessionID) async throws -> SessionRecord?
    /// Committed chunks of a session, ordered by index, from the given one on.
    func chunks(of id: SessionID, from index: Int, limit: Int) async throws -> [CommittedChunk]
    /// Partials of a session, ordered by index, from the given one on.
    func partials(of id: SessionID, from index: Int, limit: Int) async throws -> [PartialRecord]
    /// Files that are not deleted, ordered by digest and id, after the given one.
    func liveFiles(after: FileRecord?, limit: Int) async throws -> [FileRecord]
    /// The file's current record; nil when it is deleted.
    func liveFile(_ id: FileID) async throws -> FileRecord?
    /// True while a session, a file or the garbage names these bytes, or a blob is made of them.
    func isKnown(_ bytes: StoredBytes) async throws -> Bool
    /// Owners whose sums are not those of their sessions and files, in the order of their text,
    /// after the given one.
    func quotaDrifts(after: OwnerID?, limit: Int) async throws -> [QuotaDrift]
}

/// The bytes as a check reads them. Changes nothing, and does not even create a missing directory.
/// Throws only ``ByteStoreError``, `CancellationError` and the errors of a closure.
package protocol CheckedBytes: Sendable {
    /// True when another process may change rows and bytes during the check.
    var isShared: Bool { get }
    /// Calls the closure with every name, quarantined ones first and otherwise unordered. May pass
    /// a staging area more than once.
    func forEachEntry(_ body: (StoredEntry) async throws -> Void) async throws
    /// True while a walk would find these bytes.
    func hasEntry(_ bytes: StoredBytes) async throws -> Bool
    /// Size of a blob; nil when there is none.
    func byteCount(of blob: BlobName) async throws -> Int64?
    /// Opens a blob for reading.
    ///
    /// - Throws: `notFound` when there is none.
    func open(_ blob: BlobName) async throws -> any BlobReader
    /// Returns the received bytes of a session.
    func staging(of session: SessionRecord) async throws -> any CheckedStaging
}

/// The received bytes of one session, as a check sees them.
package protocol CheckedStaging: Sendable {
    /// False when the store has nothing that could hold them.
    var isPresent: Bool { get }
    /// False when the store does not report which chunks it has; all of them then count as present.
    var isListed: Bool { get }
    /// Returns those of these chunks, given in order of their index, that are not stored as
    /// recorded.
    func missing(of chunks: [CommittedChunk]) async throws -> ChunkSet
    /// Returns the chunks whose partials are not stored as recorded.
    func missing(of partials: [PartialRecord]) async throws -> ChunkSet
    /// Opens the bytes for reading by their offset in the file; nil when the store cannot return
    /// them.
    ///
    /// - Parameter first: The first of the recorded chunks.
    func open(first: CommittedChunk?) async throws -> (any BlobReader)?
}

/// A byte store that can also quarantine blobs.
package protocol RepairableBytes: LocalByteStore {
    /// Moves a blob that no row knows to quarantine, without destroying it; an absent one is no
    /// error.
    func quarantine(_ digest: SHA256Digest) async throws
    /// Moves a superseded copy to quarantine; an absent one is no error.
    func quarantine(_ digest: SHA256Digest, supersededBy key: StagingKey) async throws
}

/// The stores that a repair changes. Local stores are locked for the check; running nodes may use
/// shared ones meanwhile.
package struct RepairedStores: Sendable {
    package var metadata: any ChunkStore & QuotaRepair & ScrubRecords
    /// Nil where bytes that no row knows are reported and left in place.
    package var bytes: (any RepairableBytes)?
    /// Gives the time from which a file is known to be damaged.
    package var clock: any WallClock

    package init(
        metadata: any ChunkStore & QuotaRepair & ScrubRecords, bytes: (any RepairableBytes)?,
        clock: any WallClock = SystemWallClock()
    ) {
        self.metadata = metadata
        self.bytes = bytes
        self.clock = clock
    }
}
