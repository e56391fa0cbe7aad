package import KedgeModel

/// Bytes that the store keeps under a name.
package enum StoredBytes: Hashable, Sendable {
    case staging(StagingKey)
    case blob(SHA256Digest)
}

/// A name that a walk over the store comes by.
package enum StoredEntry: Hashable, Sendable {
    case bytes(StoredBytes)
    /// Put aside by an earlier recovery or repair.
    case quarantined(String)
    /// None of the names that the store gives.
    case unknown(String)
}

/// What a check reads of the rows, in pages, so that memory does not grow with the store. Only
/// ``MetadataError`` is thrown, and nothing is changed.
package protocol CheckedRows: Sendable {
    /// What the database says of its own state; empty when it is whole.
    func databaseFaults() async throws -> [CheckFinding]
    /// Bytes that the rows promise in staging areas and blobs, each blob counted once.
    func promisedByteCount() async throws -> Int64
    /// Sessions whose bytes are in a staging area, by id, from after the given one.
    func sessionsWithBytes(after: SessionID?, limit: Int) async throws -> [SessionRecord]
    /// Committed chunks of a session, by index, from the given one on.
    func chunks(of id: SessionID, from index: Int, limit: Int) async throws -> [CommittedChunk]
    /// Partials of a session, by index, from the given one on.
    func partials(of id: SessionID, from index: Int, limit: Int) async throws -> [PartialRecord]
    /// Files that are not deleted, by digest and id, from after the given one.
    func liveFiles(after: FileRecord?, limit: Int) async throws -> [FileRecord]
    /// True while a session, a file or the garbage names these bytes.
    func isKnown(_ bytes: StoredBytes) async throws -> Bool
}

/// What a check reads of the bytes. Only ``ByteStoreError`` is thrown, besides what a closure
/// throws, and nothing is changed: not even a missing directory is made.
package protocol CheckedBytes: Sendable {
    /// Hands out every name, what is quarantined first, in no other order.
    func forEachEntry(_ body: (StoredEntry) async throws -> Void) async throws
    /// Size of the bytes; nil when there are none.
    func byteCount(of bytes: StoredBytes) async throws -> Int64?
    /// Opens bytes for reading.
    ///
    /// - Throws: `notFound` when there are none.
    func open(_ bytes: StoredBytes) async throws -> any BlobReader
}

/// A byte store that can put blobs aside, too.
package protocol RepairableBytes: LocalByteStore {
    /// Moves a blob that no row knows out of the way without destroying it; an absent one is no
    /// error.
    func quarantine(_ digest: SHA256Digest) async throws
}

/// The stores that a repair changes; the check holds them for itself.
package struct RepairedStores: Sendable {
    package var metadata: any MetadataStore
    package var bytes: any RepairableBytes

    package init(metadata: any MetadataStore, bytes: any RepairableBytes) {
        self.metadata = metadata
        self.bytes = bytes
    }
}
