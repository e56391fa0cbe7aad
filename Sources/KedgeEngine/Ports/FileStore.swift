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

/// The stored files that are meant among those of one shape.
package enum StoredFileMatch: Hashable, Sendable {
    /// All of them.
    case any
    /// Those with this digest of their first chunk.
    case firstChunk(SHA256Digest)
    /// Those with this digest of the whole file.
    case whole(SHA256Digest)
}

/// The files whose bytes a new session may use.
package struct StoredFileShape: Hashable, Sendable {
    package var owner: OwnerID
    package var byteCount: Int64
    package var chunkSize: Int64
    /// The blob was verified at this time or later, by its upload or by the scrub.
    package var verifiedSince: Timestamp

    package init(
        owner: OwnerID, byteCount: Int64, chunkSize: Int64, verifiedSince: Timestamp
    ) {
        self.owner = owner
        self.byteCount = byteCount
        self.chunkSize = chunkSize
        self.verifiedSince = verifiedSince
    }

    /// Number of the newest files of one size that a store compares; more are not found.
    package static let maxComparedFileCount = 4096
    /// Maximum number of chunk records that are copied in one transaction, which other clients wait
    /// for.
    package static let maxChunkCount = 16_384
    /// Time since the last scrub after which a use of stored bytes makes them due for the next one:
    /// a second file depends on them now.
    package static let scrubAge = Duration.seconds(3600)

    /// Whether chunk records cover a file of this shape and are few enough to be copied.
    package func isWhole(chunkCount: Int, byteCount: Int64?) -> Bool {
        let layout = ChunkLayout(fileSize: self.byteCount, chunkSize: chunkSize)
        return chunkCount == layout.chunkCount && byteCount == self.byteCount
            && chunkCount <= Self.maxChunkCount
    }
}

extension SessionRecord {
    /// Whether the session can become a file of this shape and digest if it has no bytes.
    package func canBecome(_ stored: StoredFileShape, _ digest: SHA256Digest) -> Bool {
        owner == stored.owner && fileSize == stored.byteCount && stored.byteCount > 0
            && chunkSize == stored.chunkSize && sourceIDs == nil
            && (declaredDigest == nil || declaredDigest == digest)
    }
}

extension StoredFileMatch {
    /// Number of the newest files of a shape that are compared.
    package var comparedFileCount: Int {
        if case .any = self { 64 } else { StoredFileShape.maxComparedFileCount }
    }

    /// The digest that is looked for.
    package var digest: SHA256Digest? {
        switch self {
        case .any: nil
        case .firstChunk(let digest), .whole(let digest): digest
        }
    }

    /// Whether a file is meant.
    package func matches(_ file: StoredFile) -> Bool {
        switch self {
        case .any: true
        case .firstChunk(let digest): file.firstChunkSha256 == digest
        case .whole(let digest): file.fileHashSha256 == digest
        }
    }
}

extension StoredFile {
    /// Returns the first files that have different bytes.
    package static func distinct(_ files: [StoredFile], limit: Int) -> [StoredFile] {
        var digests: Set<SHA256Digest> = []
        return Array(files.filter { digests.insert($0.fileHashSha256).inserted }.prefix(limit))
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

    /// Returns files that a new session could become without receiving a byte, newest first.
    ///
    /// - Parameters:
    ///   - shape: Only files of this owner, size and chunk size whose blob is not known to be
    ///     damaged and was verified since the given time.
    ///   - match: The files that are meant. Only the newest
    ///     ``StoredFileShape/maxComparedFileCount`` of the shape are compared.
    ///   - limit: Maximum number of files; of several with the same bytes, one is returned.
    func storedFiles(
        like shape: StoredFileShape, _ match: StoredFileMatch, limit: Int
    ) async throws -> [StoredFile]

    /// Deletes a file. Its blob becomes garbage with the last file that has it. Idempotent.
    func deleteFile(_ id: FileID, owner: OwnerID, at now: Timestamp) async throws
}
