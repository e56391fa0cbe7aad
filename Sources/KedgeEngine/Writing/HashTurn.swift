internal import KedgeFiles
internal import KedgeHash

/// A chunk's turn in the hash of its file. With it, the chunk's hash and the file's go over the same bytes
/// at once; without it, the bytes are read back later.
struct HashTurn: Sendable {
    /// A chunk whose first bytes took longer comes over a slow link, and does not wait: there is time
    /// enough for reading back.
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
