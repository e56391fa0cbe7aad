internal import KedgeFiles
internal import KedgeHash
internal import KedgeLocks

/// A chunk's turn in the hash of its file.
///
/// Bytes that are written already wait in memory for a moment, so that the chunk's hash and the file's can
/// go over them together; otherwise they would have to be read back. They wait only while that costs
/// little: see ``HeldBytes``.
struct HashTurn: Sendable {
    /// How long bytes wait for their turn. Chunks from fast links come in less; the others are hashed
    /// alone, and their links leave time enough for reading them back.
    static let patience = Duration.milliseconds(250)

    private let turns: HashTurns
    private let start: Int64
    private let parts: EngineParts

    /// - Parameter start: Offset of the chunk's first byte.
    init(_ live: LiveSession, start: Int64) {
        turns = live.prefix.turns
        self.start = start
        parts = live.parts
    }

    /// The file's hash up to the chunk; nil while it is not there.
    func take() -> SHA256Hasher? { turns.borrow(at: start) }

    /// The file's hash up to the chunk, when it comes soon.
    func wait() async -> SHA256Hasher? {
        let timer = parts.timer
        return await turns.borrow(at: start, patience: parts.configuration.hashTurnPatience) {
            try await timer.sleep(for: $0)
        }
    }
}

/// The memory in which bytes may wait for their turn, over all chunks.
final class HeldBytes: Sendable {
    private let limit: Int
    private let held = Mutex(0)

    /// - Parameter limit: In bytes.
    init(limit: Int) { self.limit = limit }

    /// True when so many more may wait; then they must be given back.
    func take(_ byteCount: Int) -> Bool {
        held.withLock { held in
            guard held + byteCount <= limit else { return false }
            held += byteCount
            return true
        }
    }

    func give(_ byteCount: Int) { held.withLock { $0 -= byteCount } }
}
