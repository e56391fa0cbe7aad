internal import KedgeFiles
internal import KedgeHash

/// A chunk's step in the ordered hashing of its file. When the file's hash up to the chunk is
/// available, the chunk's bytes are hashed for the chunk and the file at once. Otherwise they are
/// read back later.
struct FileHashStep: Sendable {
    /// Longest time to receive the first bytes of a chunk that waits for the hash. A slower link
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

    /// Returns the file's hash up to the chunk; nil while it is not available.
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
