package import KedgeModel

/// A position in a list of files: newest first, or by path and among equal paths newest first.
package struct FileCursor: Hashable, Sendable {
    package var createdAt: Timestamp
    package var id: FileID
    /// Nil in a list that is not sorted by path.
    package var path: String?

    package init(createdAt: Timestamp, id: FileID, path: String? = nil) {
        self.createdAt = createdAt
        self.id = id
        self.path = path
    }

    /// The position of a file.
    package init(_ file: FileRecord) {
        self.init(createdAt: file.createdAt, id: file.id, path: file.path)
    }

    /// The start of a list: later than every file.
    package static let beforeAll = FileCursor(
        createdAt: Timestamp(millisecondsSinceEpoch: .max),
        id: FileID(wellFormed: String(repeating: "f", count: 32)))
}

/// A path and everything below it, by whole components: `a/b` has `a/b` and `a/b/c`, but not
/// `a/bc`. The empty prefix has all files with a path.
package struct PathPrefix: Hashable, Sendable {
    package let text: String

    /// - Parameter text: One `/` at its end means nothing.
    package init(_ text: String) {
        self.text = text.utf8.last == UInt8(ascii: "/") ? String(text.dropLast()) : text
    }

    /// Paths from `lower`, up to but not including `upper`, in byte order.
    package struct Range: Hashable, Sendable {
        package var lower: String
        /// Nil for no upper bound.
        package var upper: String?
    }

    /// The ranges of the paths, in byte order.
    package var ranges: [Range] {
        guard !text.isEmpty else { return [Range(lower: "")] }
        // No character of a stored path is below U+0001, and `0` follows `/`.
        return [
            Range(lower: text, upper: text + "\u{1}"), Range(lower: text + "/", upper: text + "0"),
        ]
    }
}

/// Stores the records of finished files. Each operation is one transaction, as in
/// ``MetadataStore``.
package protocol FileStore: Sendable {
    /// Returns the file, deleted or not; nil when this owner never had such a file.
    func file(_ id: FileID, owner: OwnerID) async throws -> FileRecord?

    /// Returns up to `limit` files that are not deleted, newest first.
    func files(of owner: OwnerID, after: FileCursor?, limit: Int) async throws -> [FileRecord]

    /// Returns up to `limit` files that are not deleted and have a path with the prefix, by the
    /// bytes of their paths; of several with the same path the newest first.
    ///
    /// - Parameter after: A cursor with a path; nil for the start.
    func files(
        of owner: OwnerID, under prefix: PathPrefix, after: FileCursor?, limit: Int
    ) async throws -> [FileRecord]

    /// Returns the digests of a file's chunks, in order.
    func chunkDigests(of file: FileRecord) async throws -> [SHA256Digest]

    /// Deletes a file. Its blob becomes garbage with the last file that has it. Idempotent.
    func deleteFile(_ id: FileID, owner: OwnerID, at now: Timestamp) async throws
}
