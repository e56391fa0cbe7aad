internal import KedgeFiles
internal import KedgeHash

/// A chunk's turn in the ordered hashing of its file. In its turn, the chunk's bytes are hashed for
/// the chunk and the file at once. Otherwise they are read back later.
struct FileHashStep: Sendable {
    /// Longest time to receive the first bytes of a chunk that waits for its turn. A slower link
    /// leaves enough time for reading back.
    static let fastAge = Duration.milliseconds(250)

    private let fileHashing: OrderedHashing
    private let start: Int64
    private let context: EngineContext

    /// - Parameter start: Offset of the chunk's first byte.
    init(_ session: LiveSession, start: Int64) {
        fileHashing = session.prefix.fileHashing
        self.start = start
        context = session.context
    }

    /// Returns the file's hash up to the chunk; nil before the chunk's turn.
    func take() -> SHA256Hasher? { fileHashing.makeHasher(at: start) }

    /// Waits for the file's hash up to the chunk; returns nil if it does not come in time.
    func wait() async -> SHA256Hasher? {
        let timer = context.timer
        return await fileHashing.makeHasher(
            at: start, timeout: context.configuration.hashStepTimeout
        ) {
            try await timer.sleep(for: $0)
        }
    }
}
