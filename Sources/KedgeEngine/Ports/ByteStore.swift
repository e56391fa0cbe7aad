package import KedgeFiles
package import KedgeModel

/// Errors that every byte store reports alike.
package enum ByteStoreError: Error, Hashable, Sendable {
    /// There are no bytes under this name.
    case notFound
    /// The bytes are stored, but cannot be read before ``ByteStore/assemble(_:)``.
    case notAssembled
    /// No space is left. Nothing that was saved is lost.
    case full(String)
    /// The store cannot be used now.
    case unavailable(String)
    /// A read, write or sync failed. What was not saved before must be written again.
    case failed(String)
}

/// Where bytes of a chunk lie in their file.
package struct ChunkPlace: Hashable, Sendable {
    package var index: Int
    /// Offset in the file of the chunk's first byte.
    package var start: Int64
    /// Bytes from there that are meant: the whole chunk's, or those of its first part.
    package var byteCount: Int64
    /// True when the file has no other chunk.
    package var isWholeFile: Bool

    package init(index: Int, start: Int64, byteCount: Int64, isWholeFile: Bool = false) {
        self.index = index
        self.start = start
        self.byteCount = byteCount
        self.isWholeFile = isWholeFile
    }

    /// Offset after the last byte that is meant.
    package var end: Int64 { start + byteCount }
}

/// The bytes of one session on their way in. Offsets are those of the file.
///
/// What is written counts once it is saved, chunk by chunk. A store may keep a text with what it saved, its
/// *location*; the row of the chunk or partial carries it, and it is handed back when the bytes are needed
/// again, on whatever node that is.
///
/// After a failed save the area may refuse everything (``isInDoubt``): bytes written since the last
/// successful one may be gone, and a second sync would lie. The session opens the area anew.
package protocol StagingArea: AnyObject, Sendable {
    /// Writes the buffer's bytes at the offset. Not durable before they are saved.
    func write(_ buffer: IOBuffer, at offset: Int64) async throws
    /// The same for bytes that nobody reads back soon, which a store need not keep at hand.
    func writeUncached(_ buffer: IOBuffer, at offset: Int64) async throws
    /// Makes the first bytes of a chunk durable. They were written here, apart from those that the earlier
    /// location names.
    ///
    /// - Parameter earlier: Location of the partial that is recorded; nil when there is none.
    /// - Returns: The location of all the bytes; nil when the store finds them without.
    func savePartial(_ place: ChunkPlace, after earlier: String?) async throws -> String?
    /// Makes a whole chunk durable, whose bytes have this digest.
    ///
    /// - Returns: As ``savePartial(_:after:)``.
    /// - Throws: `notFound` when what was saved of the file before is gone.
    func saveChunk(
        _ place: ChunkPlace, digest: SHA256Digest, after earlier: String?
    ) async throws -> String?
    /// Opens a place for the bytes of another body for a chunk that has a partial here: beside that one's, and with
    /// the same offsets. The caller closes it.
    ///
    /// - Parameters:
    ///   - place: The bytes of the rival that is recorded; none when one begins anew.
    ///   - isKept: False for one that is gone when it is closed, and is never saved.
    /// - Throws: `notFound` when the recorded bytes are not there.
    func openRival(_ place: ChunkPlace, isKept: Bool) async throws -> any StagingArea
    /// Makes the bytes of a partial those of a rival, durably. The caller knows that the chunk has none.
    ///
    /// - Parameter location: That of the partial.
    /// - Returns: That of the rival.
    /// - Throws: `notFound` when the bytes are gone.
    func keepAsRival(_ place: ChunkPlace, location: String?) async throws -> String?
    /// Brings the bytes of a partial to where ``read(into:at:byteCount:)`` finds them.
    ///
    /// - Throws: `notFound` when they are gone.
    func gather(_ place: ChunkPlace, after earlier: String?) async throws
    /// Removes what lies beside a chunk's partial, if that is not done when the area goes. None is no error.
    func removeRival(ofChunk index: Int) async throws
    /// What the store can copy these bytes from; nil when it cannot, or they are not one object yet.
    ///
    /// - Throws: `notFound` when the bytes are not there.
    func copySource() async throws -> CopySource?
    /// Tells that the bytes of the source are those that are written from the offset on. Whoever saves them may
    /// have the store copy them, and finds out whether they are the same.
    func noteCopies(of source: CopySource, at offset: Int64)
    /// Fills the buffer's free part, at most `byteCount` bytes, from the offset.
    ///
    /// - Throws: `notFound` when the bytes are not there, `notAssembled` when they are but cannot be read.
    func read(into buffer: IOBuffer, at offset: Int64, byteCount: Int64) async throws
    /// True after a failed save that left written bytes in doubt: the area must be opened anew.
    var isInDoubt: Bool { get }
    /// Nobody reads the bytes below the offset any more.
    func release(below offset: Int64) async
    /// Gives up what the area holds on this node.
    func close() async
}

extension StagingArea {
    package func writeUncached(_ buffer: IOBuffer, at offset: Int64) async throws {
        try await write(buffer, at: offset)
    }

    package func gather(_ place: ChunkPlace, after earlier: String?) async throws {}
    package func removeRival(ofChunk index: Int) async throws {}
    package func copySource() async throws -> CopySource? { nil }
    package func noteCopies(of source: CopySource, at offset: Int64) {}
    package var isInDoubt: Bool { false }
    package func release(below offset: Int64) async {}
}

/// Bytes that a store can copy by itself, without sending them through this process.
package struct CopySource: Hashable, Sendable {
    /// What the store calls them.
    package var name: String
    /// Another one when the bytes are others.
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
    /// What the store can copy them from; nil when it cannot.
    func copySource() async -> CopySource?
    /// Brings bytes to where sending them does not wait for a disk.
    func load(_ byteCount: Int64, at offset: Int64) async throws
    /// Drops bytes from memory, so that the next read of them shows what is stored. Best effort.
    func dropCached(_ byteCount: Int64, at offset: Int64) async
    /// A descriptor of the file's own that the caller closes, for the kernel to send from; nil when the
    /// bytes are not in a local file.
    func duplicateDescriptor() async throws -> Int32?
    /// Gives up the descriptor.
    func close() async
}

extension BlobReader {
    package func copySource() async -> CopySource? { nil }
    package func load(_ byteCount: Int64, at offset: Int64) async throws {}
    package func dropCached(_ byteCount: Int64, at offset: Int64) async {}
    package func duplicateDescriptor() async throws -> Int32? { nil }
}

/// The bytes of a session that has all its chunks.
package struct StagedFile: Sendable {
    package var key: StagingKey
    package var byteCount: Int64
    /// All chunks, by rising index.
    package var chunks: [CommittedChunk]
    /// False when a blob that has the name already need not be kept beside the new one.
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

/// Names the bytes of a finished file.
package struct BlobName: Hashable, Sendable {
    package var digest: SHA256Digest
    package var byteCount: Int64
    /// Where the store put them; nil when it names them by their digest.
    package var location: String?

    package init(digest: SHA256Digest, byteCount: Int64, location: String? = nil) {
        self.digest = digest
        self.byteCount = byteCount
        self.location = location
    }
}

/// Where bytes are kept: staging areas of sessions, and the blobs they become. Only
/// ``ByteStoreError`` is thrown.
package protocol ByteStore: Sendable {
    /// Names the place of the bytes: two nodes with the same one see the same bytes, others do not.
    func identity() async throws -> String
    /// True when several nodes may use the place at once.
    var isShared: Bool { get }
    /// True when the bytes of committed chunks can be read on every node only after ``assemble(_:)``.
    var assembles: Bool { get }

    /// Opens the staging area, making it when it is absent. Its name is durable when this returns.
    func openStaging(_ key: StagingKey) async throws -> any StagingArea
    /// Removes what is left of a staging area; an absent one is no error.
    ///
    /// - Parameters:
    ///   - state: What the store recorded for the area; see ``StagingRecords``.
    ///   - location: The blob that the area became and that a file still needs; it stays.
    func removeStaging(_ key: StagingKey, state: String?, keeping location: String?) async throws
    /// Makes the bytes of a complete file readable from end to end through its staging area. Asked again
    /// after a success, it does nothing.
    ///
    /// - Throws: `notFound` when bytes are gone that the chunks name.
    func assemble(_ file: StagedFile) async throws
    /// Turns the area into the blob, durably, in one step. Asked again after a success, it does nothing.
    ///
    /// Bytes of the same size that have the blob's name already are not trusted: the area takes the name,
    /// and they stay as a ``SupersededBlob`` where blobs are named by their digest.
    ///
    /// - Returns: Where the blob is; nil when the store names it by its digest.
    /// - Throws: `notFound` when there is neither the area nor a blob of this size.
    func promote(_ file: StagedFile, to digest: SHA256Digest) async throws -> String?
    /// Opens a blob for reading.
    func openBlob(_ name: BlobName) async throws -> any BlobReader
    /// Opens a superseded copy for reading.
    func openSuperseded(_ blob: SupersededBlob) async throws -> any BlobReader
    /// Removes a superseded copy that has no location, durably; an absent one is no error.
    func removeSuperseded(_ blob: SupersededBlob) async throws
    /// Gives a superseded copy that has no location its name back, durably; what has the name now is gone.
    ///
    /// - Returns: False when there is no such copy.
    func restoreSuperseded(_ blob: SupersededBlob) async throws -> Bool
    /// Removes a blob that is named by its digest, durably; an absent one is no error.
    func removeBlob(_ digest: SHA256Digest) async throws
    /// An address of the blob's bytes that needs no credentials for some minutes; nil when there is none.
    func publicURL(of name: BlobName, responseFields: [String: String]) async throws -> String?
    /// Bytes that can still be written.
    func availableBytes() async throws -> Int64
    /// Succeeds when a small file can be written, synced and removed.
    func checkHealth() async throws
    /// Gives up what the store holds, such as its lock.
    func close() async
}

extension ByteStore {
    package var isShared: Bool { false }
    package var assembles: Bool { false }
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

/// Names the bytes of a rival: those of a chunk of a staging area.
package struct RivalName: Hashable, Sendable {
    package var key: StagingKey
    package var index: Int

    package init(key: StagingKey, index: Int) {
        self.key = key
        self.index = index
    }
}

/// A byte store that one process has for itself, on its own disk. A recovery compares it with the rows.
package protocol LocalByteStore: ByteStore {
    /// Size of a staging area; nil when there is none.
    func stagingByteCount(_ key: StagingKey) async throws -> Int64?
    /// The staging areas that exist.
    func stagingKeys() async throws -> [StagingKey]
    /// True when promoting the area would supersede a blob: both are there, with bytes.
    func supersedes(_ key: StagingKey, _ name: BlobName) async throws -> Bool
    /// The rivals that have bytes, as files beside their staging areas.
    func rivals() async throws -> [RivalName]
    /// Removes the bytes of a rival; none is no error.
    func removeRival(_ name: RivalName) async throws
    /// Moves a staging area that no row knows out of the way without destroying it.
    func quarantine(_ key: StagingKey) async throws
}
