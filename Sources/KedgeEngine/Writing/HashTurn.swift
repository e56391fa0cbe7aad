internal import KedgeFiles
internal import KedgeHash

/// A chunk's turn in the ordered hashing of its file. In its turn, the chunk's bytes are hashed for
/// the chunk and the file at once. Otherwise they are read back later.
struct HashTurn: Sendable {
    /// Longest time to receive the first bytes of a chunk that waits for its turn. A slower link
    /// leaves enough time for reading back.
    static let fastAge = Duration.milliseconds(250)

    private let turns: HashTurns
    private let start: Int64
    private let parts: EngineParts

    /// - Parameter start: Offset of the chunk's first byte.
    init(_ live: LiveSession, start: Int64) {
        turns = live.prefix.turns
        self.start = start
        parts = live.parts
    }

    /// Returns the file's hash up to the chunk; nil before the chunk's turn.
    func take() -> SHA256Hasher? { turns.borrow(at: start) }

    /// Waits for the file's hash up to the chunk; returns nil if it does not come in time.
    func wait() async -> SHA256Hasher? {
        let timer = parts.timer
        return await turns.borrow(at: start, patience: parts.configuration.hashTurnPatience) {
            try await timer.sleep(for: $0)
        }
    }
}
