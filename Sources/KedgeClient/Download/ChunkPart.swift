internal import KedgeHash
internal import KedgeModel

/// Hashes of the bytes of a chunk that are present.
struct ChunkPart: Sendable {
    /// Hash of the chunk.
    private(set) var chunk = SHA256Hasher()
    /// The file's hash before the chunk and after its present bytes; nil unless it includes the
    /// chunk as it is written.
    private(set) var file: (before: SHA256Hasher, after: SHA256Hasher)?

    init() {}

    /// Continues a part of an earlier run, without the file's hash.
    init(chunk: SHA256Hasher) { self.chunk = chunk }

    /// The chunk's hash in its recorded form.
    var saved: SavedHash { SavedHash(offsetBytes: chunk.byteCount, state: chunk.savedState) }

    /// Number of bytes present.
    var byteCount: Int64 { chunk.byteCount }

    /// Includes the chunk in the file's hash. Requires that no byte of the chunk is present.
    mutating func join(_ fileHash: SHA256Hasher) { file = (fileHash, fileHash) }

    /// Hashes further bytes; blocks meanwhile.
    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard var after = file?.after else { return chunk.update(bytes) }
        SHA256Hasher.update(&chunk, &after, with: bytes)
        file?.after = after
    }
}

/// A chunk's step in the ordered hashing of a downloaded file.
struct FileHashStep: Sendable {
    /// Limit for the first bytes of a chunk. A faster chunk waits for those before it; a slower one
    /// comes over a slow link.
    private static let fast = Duration.milliseconds(250)
    private static let timeout = Duration.milliseconds(100)

    private let fileHashing: OrderedHashing
    private let start: Int64
    private let environment: ClientEnvironment
    private let began = ContinuousClock.now

    /// - Parameter start: Offset of the chunk's first byte.
    init(_ hash: FileHasher, start: Int64, environment: ClientEnvironment) {
        fileHashing = hash.fileHashing
        self.start = start
        self.environment = environment
    }

    /// Returns the file's hash up to the chunk; nil if the earlier chunks take too long. The body
    /// stays in the connection during the wait, which leaves the processor to the earlier chunks.
    func wait() async -> SHA256Hasher? {
        guard ContinuousClock.now - began < Self.fast else {
            return fileHashing.makeHasher(at: start)
        }
        return await fileHashing.makeHasher(
            at: start, timeout: Self.timeout, sleep: environment.pause)
    }
}
