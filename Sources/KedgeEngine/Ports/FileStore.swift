package import KedgeModel

/// A position in a list of files, newest first.
package struct FileCursor: Hashable, Sendable {
    package var createdAt: Timestamp
    package var id: FileID

    package init(createdAt: Timestamp, id: FileID) {
        self.createdAt = createdAt
        self.id = id
    }

    /// The start of a list: later than every file.
    package static let beforeAll = FileCursor(
        createdAt: Timestamp(millisecondsSinceEpoch: .max),
        id: FileID(wellFormed: String(repeating: "f", count: 32)))
}

/// Stores the records of finished files. Each operation is one transaction, as in
/// ``MetadataStore``.
package protocol FileStore: Sendable {
    /// Returns the file, deleted or not; nil when this owner never had such a file.
    func file(_ id: FileID, owner: OwnerID) async throws -> FileRecord?

    /// Returns up to `limit` files that are not deleted, newest first.
    func files(of owner: OwnerID, after: FileCursor?, limit: Int) async throws -> [FileRecord]

    /// Returns the digests of a file's chunks, in order.
    func chunkDigests(of file: FileRecord) async throws -> [SHA256Digest]

    /// Deletes a file. Its blob becomes garbage with the last file that has it. Idempotent.
    func deleteFile(_ id: FileID, owner: OwnerID, at now: Timestamp) async throws
}
