package import KedgeFiles
package import KedgeModel

/// Errors common to all byte stores.
package enum ByteStoreError: Error, Hashable, Sendable {
    /// There are no bytes under this name.
    case notFound
    /// The bytes are stored, but cannot be read before ``ByteStore/assemble(_:)``.
    case notAssembled
    /// No space is left. Saved bytes are not affected.
    case full(String)
    /// The store cannot be used now.
    case unavailable(String)
    /// A read, write or sync failed. Bytes that were not saved before must be written again.
    case failed(String)
}

/// The position of bytes of a chunk in their file.
package struct ChunkRange: Hashable, Sendable {
    package var index: Int
    /// Offset in the file of the chunk's first byte.
    package var start: Int64
    /// Number of bytes from there: the whole chunk, or its first part.
    package var byteCount: Int64
    /// True when the file has only this chunk.
    package var isWholeFile: Bool

    package init(index: Int, start: Int64, byteCount: Int64, isWholeFile: Bool = false) {
        self.index = index
        self.start = start
        self.byteCount = byteCount
        self.isWholeFile = isWholeFile
    }

    /// Offset after the last of these bytes.
    package var end: Int64 { start + byteCount }
}

/// The received bytes of one session. Offsets are those of the file.
///
/// Bytes are durable once they are saved, chunk by chunk. On a save, a store may return a text, the
/// *location*. The row of the chunk or partial keeps it, and any node that needs the bytes later
/// passes it back.
///
/// After a failed save the area may refuse every call (``isInDoubt``): bytes written since the last
/// successful save may be lost, and a second sync would report a false success. The session then
/// opens the area again.
package protocol StagingArea: AnyObject, Sendable {
    /// Writes the buffer's bytes at the offset. They are not durable until they are saved.
    ///
    /// - Parameters:
    ///   - isCached: False for bytes that are not read back soon, so the store need not cache them.
    ///   - work: Runs first, on the thread that writes; not at all when the write is refused before
    ///     it begins. May block.
    func write(
        _ buffer: IOBuffer, at offset: Int64, isCached: Bool,
        after work: @escaping @Sendable () -> Void
    ) async throws
    /// Makes the first bytes of a chunk durable. They were written to this area, except those at
    /// the earlier location.
    ///
    /// - Parameter earlier: Location of the recorded partial; nil when there is none.
    /// - Returns: The location of all the bytes; nil when the store needs none to find them.
    func savePartial(_ range: ChunkRange, after earlier: String?) async throws -> String?
    /// Makes a complete chunk with this digest durable.
    ///
    /// - Returns: The location, as ``savePartial(_:after:)`` does.
    /// - Throws: `notFound` when bytes of the file that were saved before are gone.
    func saveChunk(
        _ range: ChunkRange, digest: SHA256Digest, after earlier: String?
    ) async throws -> String?
    /// Opens an area for a rival: the bytes of another body for a chunk that has a partial here.
    /// They are stored beside the partial and use the same offsets. The caller closes the area.
    ///
    /// - Parameters:
    ///   - range: The bytes of the recorded rival; empty for a new one.
    ///   - isKept: False for a rival that is never saved and disappears on close.
    /// - Throws: `notFound` when the recorded bytes are not there.
    func openRival(_ range: ChunkRange, isKept: Bool) async throws -> any StagingArea
    /// Turns the bytes of a partial into a rival, durably. The caller makes sure that the chunk has
    /// no rival.
    ///
    /// - Parameter location: The location of the partial.
    /// - Returns: The location of the rival.
    /// - Throws: `notFound` when the bytes are gone.
    func keepAsRival(_ range: ChunkRange, location: String?) async throws -> String?
    /// Makes the bytes of a partial available to ``read(into:at:byteCount:)``.
    ///
    /// - Throws: `notFound` when the bytes are gone.
    func gather(_ range: ChunkRange, after earlier: String?) async throws
    /// Removes the rival of a chunk, unless the store removes it with the area. An absent one is no
    /// error.
    func removeRival(ofChunk index: Int) async throws
    /// The object from which the store can copy these bytes; nil when it cannot, or they are not
    /// one object yet.
    ///
    /// - Throws: `notFound` when the bytes are not there.
    func copySource() async throws -> CopySource?
    /// Notes that the bytes of the source equal those written from the offset on. A later save may
    /// have the store copy them; the save verifies that they are the same.
    func noteCopies(of source: CopySource, at offset: Int64)
    /// Fills the buffer's free part, at most `byteCount` bytes, from the offset.
    ///
    /// - Throws: `notFound` when the bytes are gone, `notAssembled` when they cannot be read yet.
    func read(into buffer: IOBuffer, at offset: Int64, byteCount: Int64) async throws
    /// True after a failed save that may have lost written bytes: the area must be opened again.
    var isInDoubt: Bool { get }
    /// Drops what this node keeps of stored bytes in its memory or in a spool, so that the next
    /// read gets them from where they are durable.
    func dropCached(_ byteCount: Int64, at offset: Int64) async
    /// Frees what the area keeps of the bytes below the offset: they are not read any more.
    func release(below offset: Int64) async
    /// Releases the area's resources on this node.
    func close() async
}

extension StagingArea {
    /// Writes the buffer's bytes at the offset. They are not durable until they are saved.
    package func write(_ buffer: IOBuffer, at offset: Int64) async throws {
        try await write(buffer, at: offset, isCached: true) {}
    }

    package func gather(_ range: ChunkRange, after earlier: String?) async throws {}
    package func removeRival(ofChunk index: Int) async throws {}
    package func copySource() async throws -> CopySource? { nil }
    package func noteCopies(of source: CopySource, at offset: Int64) {}
    package var isInDoubt: Bool { false }
    package func dropCached(_ byteCount: Int64, at offset: Int64) async {}
    package func release(below offset: Int64) async {}
}

/// Bytes that a store can copy by itself, without sending them through this process.
package struct CopySource: Hashable, Sendable {
    /// The store's name for them.
    package var name: String
    /// Changes whenever the bytes change.
    package var tag: String
    package var byteCount: Int64

    package init(name: String, tag: String, byteCount: Int64) {
        self.name = name
        self.tag = tag
        self.byteCount = byteCount
    }
}

/// The bytes of one finished file.
package protocol BlobReader: AnyObject, Sendable {
    var byteCount: Int64 { get }
    /// Fills the buffer's free part, at most `byteCount` bytes, from the offset.
    func read(into buffer: IOBuffer, at offset: Int64, byteCount: Int64) async throws
    /// The object from which the store can copy the bytes; nil when it cannot.
    func copySource() async -> CopySource?
    /// Prefetches bytes, so that sending them does not wait for a disk.
    func prefetch(_ byteCount: Int64, at offset: Int64) async throws
    /// Drops bytes from memory, so that the next read returns what is stored. Best effort.
    func dropCached(_ byteCount: Int64, at offset: Int64) async
    /// A duplicate descriptor for the kernel to send from, which the caller closes; nil when the
    /// bytes are not in a local file.
    func duplicateDescriptor() async throws -> Int32?
    /// Releases the reader's resources.
    func close() async
}

extension BlobReader {
    package func copySource() async -> CopySource? { nil }
    package func prefetch(_ byteCount: Int64, at offset: Int64) async throws {}
    package func dropCached(_ byteCount: Int64, at offset: Int64) async {}
    package func duplicateDescriptor() async throws -> Int32? { nil }
}

/// A session's bytes with the complete chunk list.
package struct StagedFile: Sendable {
    package var key: StagingKey
    package var byteCount: Int64
    /// All chunks, by rising index.
    package var chunks: [CommittedChunk]
    /// False when an existing blob of the same name need not be kept.
    package var keepsPrevious: Bool

    package init(
        key: StagingKey, byteCount: Int64, chunks: [CommittedChunk], keepsPrevious: Bool = true
    ) {
        self.key = key
        self.byteCount = byteCount
        self.chunks = chunks
        self.keepsPrevious = keepsPrevious
    }
}

/// Stores bytes: the staging areas of sessions, and the blobs that they become. Throws only
/// ``ByteStoreError``.
package protocol ByteStore: Sendable {
    /// Returns the identity of the storage. Two nodes see the same bytes exactly when it is equal.
    func identity() async throws -> String
    /// True when several nodes may use the storage at once.
    var isShared: Bool { get }
    /// How the store works, as far as the engine's work depends on it.
    var traits: ByteStoreTraits { get }

    /// Opens the staging area, creating it when it is absent. Its name is durable on return.
    func openStaging(_ key: StagingKey) async throws -> any StagingArea
    /// Removes the rest of a staging area; an absent one is no error.
    ///
    /// - Parameters:
    ///   - state: The state that the store recorded for the area; see ``StagingRecords``.
    ///   - location: The blob that the area became and that a file still needs; it stays.
    func removeStaging(_ key: StagingKey, state: String?, keeping location: String?) async throws
    /// Makes the bytes of a complete file readable from start to end through its staging area.
    /// Idempotent.
    ///
    /// - Throws: `notFound` when bytes that the chunks name are gone.
    func assemble(_ file: StagedFile) async throws
    /// Turns the area into the blob, durably, in one step. Idempotent.
    ///
    /// An existing blob of the same name and size is not trusted: the area takes the name. The
    /// existing blob stays as a ``SupersededBlob`` where blobs are named by their digest.
    ///
    /// - Returns: The blob's location; nil when the store names it by its digest.
    /// - Throws: `notFound` when neither the area nor a blob of this size exists.
    func promote(_ file: StagedFile, to digest: SHA256Digest) async throws -> String?
    /// Opens a blob for reading.
    func openBlob(_ name: BlobName) async throws -> any BlobReader
    /// Opens a superseded copy for reading.
    func openSuperseded(_ blob: SupersededBlob) async throws -> any BlobReader
    /// Removes a superseded copy that has no location, durably; an absent one is no error.
    func removeSuperseded(_ blob: SupersededBlob) async throws
    /// Renames a superseded copy without a location back to the blob's name, durably, replacing the
    /// blob.
    ///
    /// - Returns: False when there is no such copy.
    func restoreSuperseded(_ blob: SupersededBlob) async throws -> Bool
    /// Removes a blob that is named by its digest, durably; an absent one is no error.
    func removeBlob(_ digest: SHA256Digest) async throws
    /// Returns a URL of the blob's bytes that needs no credentials for some minutes; nil when the
    /// store has none.
    func publicURL(of name: BlobName, responseFields: [String: String]) async throws -> String?
    /// Returns how many bytes can still be written.
    func availableBytes() async throws -> Int64
    /// Writes, syncs and removes a small file; throws when that fails.
    func checkHealth() async throws
    /// Releases the store's resources, such as its lock.
    func close() async
}

extension ByteStore {
    package var isShared: Bool { false }
    package func assemble(_ file: StagedFile) async throws {}
    package func openSuperseded(_ blob: SupersededBlob) async throws -> any BlobReader {
        try await openBlob(blob.blob)
    }
    package func removeSuperseded(_ blob: SupersededBlob) async throws {}
    package func restoreSuperseded(_ blob: SupersededBlob) async throws -> Bool { false }
    package func publicURL(
        of name: BlobName, responseFields: [String: String]
    ) async throws -> String? { nil }
}

/// The name of a rival: a staging area and a chunk index.
package struct RivalName: Hashable, Sendable {
    package var key: StagingKey
    package var index: Int

    package init(key: StagingKey, index: Int) {
        self.key = key
        self.index = index
    }
}

/// A byte store on a local disk, used by one process alone. A recovery compares it with the rows.
package protocol LocalByteStore: ByteStore {
    /// Returns the size of a staging area; nil when there is none.
    func stagingByteCount(_ key: StagingKey) async throws -> Int64?
    /// Returns the existing staging areas.
    func stagingKeys() async throws -> [StagingKey]
    /// Returns true when promoting the area would supersede a blob: both exist and have bytes.
    func supersedes(_ key: StagingKey, _ name: BlobName) async throws -> Bool
    /// Returns the rivals that have bytes, in files beside their staging areas.
    func rivals() async throws -> [RivalName]
    /// Removes the bytes of a rival; an absent one is no error.
    func removeRival(_ name: RivalName) async throws
    /// Moves a staging area that no row knows to quarantine, without destroying it.
    func quarantine(_ key: StagingKey) async throws
}
