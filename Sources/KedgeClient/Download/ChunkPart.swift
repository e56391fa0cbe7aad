internal import KedgeHash
internal import KedgeModel

/// The hashes of what there is of a chunk.
struct ChunkPart: Sendable {
    /// Of the chunk.
    private(set) var chunk = SHA256Hasher()
    /// The file's hash before the chunk and after what there is of it, when it has its turn.
    private(set) var file: (before: SHA256Hasher, after: SHA256Hasher)?

    /// Nothing is there yet.
    init() {}

    /// What an earlier run left; the file's hash does not go along with it.
    init(chunk: SHA256Hasher) { self.chunk = chunk }

    /// The chunk's hash as it is recorded.
    var saved: SavedHash { SavedHash(offsetBytes: chunk.byteCount, state: chunk.savedState) }

    /// Number of bytes there are.
    var byteCount: Int64 { chunk.byteCount }

    /// Lets the file's hash go along; nothing of the chunk is there yet.
    mutating func join(_ fileHash: SHA256Hasher) { file = (fileHash, fileHash) }

    /// Goes on over these bytes; blocks for as long as that takes.
    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard var after = file?.after else { return chunk.update(bytes) }
        SHA256Hasher.update(&chunk, &after, with: bytes)
        file?.after = after
    }
}

/// A chunk's turn in the hash of the file that is downloaded.
struct FileHashTurn: Sendable {
    /// A chunk whose first bytes came in less waits for those before it; others come over slow links.
    private static let fast = Duration.milliseconds(250)
    private static let patience = Duration.milliseconds(100)

    private let turns: HashTurns
    private let start: Int64
    private let environment: ClientEnvironment
    private let began = ContinuousClock.now

    /// - Parameter start: Offset of the chunk's first byte.
    init(_ hash: PrefixHash, start: Int64, environment: ClientEnvironment) {
        turns = hash.turns
        self.start = start
        self.environment = environment
    }

    /// The file's hash up to the chunk; nil when it does not come soon. Meanwhile the body waits in the
    /// connection, which leaves the processor to the chunks before it.
    func wait() async -> SHA256Hasher? {
        guard ContinuousClock.now - began < Self.fast else { return turns.borrow(at: start) }
        return await turns.borrow(at: start, patience: Self.patience, sleep: environment.pause)
    }
}
