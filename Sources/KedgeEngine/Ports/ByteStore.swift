package import KedgeFiles
package import KedgeModel

/// Errors that every byte store reports alike.
package enum ByteStoreError: Error, Hashable, Sendable {
    /// There are no bytes under this name.
    case notFound
    /// No space is left. Nothing that was synced is lost.
    case full(String)
    /// The store cannot be used now.
    case unavailable(String)
    /// A read, write or sync failed. What was not synced before must be written again.
    case failed(String)
}

/// The bytes of one session on their way in. Offsets are those of the file.
///
/// After a failed ``sync()`` the area refuses everything: bytes written since the last successful one
/// are in doubt, and a second sync would lie. The session opens the area anew.
package protocol StagingArea: AnyObject, Sendable {
    /// Writes the buffer's bytes at the offset. Not durable before ``sync()``.
    func write(_ buffer: IOBuffer, at offset: Int64) async throws
    /// The same for bytes that nobody reads back soon, which a store need not keep at hand.
    func writeUncached(_ buffer: IOBuffer, at offset: Int64) async throws
    /// Makes everything durable that was written before the call.
    func sync() async throws
    /// Fills the buffer's free part, at most `byteCount` bytes, from the offset.
    ///
    /// - Throws: `notFound` when the bytes are not there.
    func read(into buffer: IOBuffer, at offset: Int64, byteCount: Int64) async throws
    /// Number of bytes up to the end of the last byte written.
    func byteCount() async throws -> Int64
    /// Gives up the descriptor.
    func close() async
}

extension StagingArea {
    package func writeUncached(_ buffer: IOBuffer, at offset: Int64) async throws {
        try await write(buffer, at: offset)
    }
}

/// The bytes of one finished file.
package protocol BlobReader: AnyObject, Sendable {
    var byteCount: Int64 { get }
    /// Fills the buffer's free part, at most `byteCount` bytes, from the offset.
    func read(into buffer: IOBuffer, at offset: Int64, byteCount: Int64) async throws
    /// Brings bytes to where sending them does not wait for a disk.
    func load(_ byteCount: Int64, at offset: Int64) async throws
    /// A descriptor of the file's own that the caller closes, for the kernel to send from; nil when the
    /// bytes are not in a local file.
    func duplicateDescriptor() async throws -> Int32?
    /// Gives up the descriptor.
    func close() async
}

extension BlobReader {
    package func load(_ byteCount: Int64, at offset: Int64) async throws {}
    package func duplicateDescriptor() async throws -> Int32? { nil }
}

/// Where bytes are kept: staging areas of sessions, and blobs named by their digest. Only
/// ``ByteStoreError`` is thrown.
package protocol ByteStore: Sendable {
    /// Opens the staging area, making it when it is absent. Its name is durable when this returns.
    func openStaging(_ key: StagingKey) async throws -> any StagingArea
    /// Removes a staging area; an absent one is no error.
    func removeStaging(_ key: StagingKey) async throws
    /// Size of a staging area; nil when there is none.
    func stagingByteCount(_ key: StagingKey) async throws -> Int64?
    /// The staging areas that exist.
    func stagingKeys() async throws -> [StagingKey]
    /// Turns the synced staging area into the blob, durably, in one step; drops the area when the
    /// blob is there already. Asked again after a success, it does nothing.
    ///
    /// - Throws: `notFound` when there is neither the area nor a blob of this size.
    func promote(_ key: StagingKey, to digest: SHA256Digest, byteCount: Int64) async throws
    /// Opens a blob for reading.
    func openBlob(_ digest: SHA256Digest) async throws -> any BlobReader
    /// Removes a blob, durably; an absent one is no error.
    func removeBlob(_ digest: SHA256Digest) async throws
    /// Moves a staging area that no row knows out of the way without destroying it.
    func quarantine(_ key: StagingKey) async throws
    /// Bytes that can still be written.
    func availableBytes() async throws -> Int64
    /// Succeeds when a small file can be written, synced and removed.
    func checkHealth() async throws
    /// Gives up what the store holds, such as its lock.
    func close() async
}
