/// A chunk's step in the ordered hashing of its file. When the file's hash up to the chunk is
/// available, the chunk's bytes are hashed for the chunk and the file at once. Otherwise they are
/// read back later.
package struct FileHashStep: Sendable {
    /// Longest time to receive the first bytes of a chunk that waits for the hash. A slower link
    /// leaves enough time for reading back.
    private static let fastAge = Duration.milliseconds(250)
    /// Default timeout of the wait for the hash.
    package static let defaultTimeout = Duration.milliseconds(100)

    private let fileHashing: OrderedHashing
    private let start: Int64
    private let timeout: Duration
    private let sleep: @Sendable (Duration) async throws -> Void

    /// - Parameters:
    ///   - start: Offset of the chunk's first byte.
    ///   - timeout: Limit of the wait for the hash; zero does not wait.
    ///   - sleep: Sleeps for the timeout; ends early when its task is cancelled.
    package init(
        in fileHashing: OrderedHashing, at start: Int64,
        timeout: Duration = FileHashStep.defaultTimeout,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.fileHashing = fileHashing
        self.start = start
        self.timeout = timeout
        self.sleep = sleep
    }

    /// Returns the file's hash up to the chunk; nil while it is not available.
    ///
    /// The first bytes of a chunk from a fast link wait briefly for the hash. The body is not read
    /// meanwhile, which leaves the processor to the chunks before it.
    ///
    /// - Parameter age: Time that the chunk's first bytes took to arrive; nil for later bytes.
    package func makeHasher(age: Duration?) async -> SHA256Hasher? {
        guard let age, age < Self.fastAge else { return fileHashing.makeHasher(at: start) }
        return await fileHashing.makeHasher(at: start, timeout: timeout, sleep: sleep)
    }
}
