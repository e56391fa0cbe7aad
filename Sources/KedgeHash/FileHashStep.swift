/// A chunk's step in the ordered hashing of its file. When the file's hash up to the chunk is
/// available, the chunk's bytes are hashed for the chunk and the file at once. Otherwise they are
/// read back later.
package struct FileHashStep: Sendable {
    /// Rate below which a link is slow: its chunks do not wait for the hash, and none waits for
    /// them. A slow link leaves enough time for reading back.
    package static let minBytesPerSecond: Int64 = 2 << 20
    /// Time over which the rate of the hash is measured while a chunk waits.
    private static let interval = Duration.milliseconds(250)
    /// Default timeout of the wait for the hash: what seven chunks of 8 MiB take at 12 MiB/s.
    package static let defaultTimeout = Duration.seconds(5)

    private let fileHashing: OrderedHashing
    private let start: Int64
    private let timeout: Duration
    private let sleep: @Sendable (Duration) async throws -> Void

    /// - Parameters:
    ///   - start: Offset of the chunk's first byte.
    ///   - timeout: Limit of the wait for the hash; zero does not wait.
    ///   - sleep: Sleeps for a duration; ends early when its task is cancelled.
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
    /// The first bytes of a chunk from a fast link wait for the hash, as long as it comes closer at
    /// the rate of a fast link. The body is not read meanwhile, which leaves the processor to the
    /// chunks before it.
    ///
    /// - Parameters:
    ///   - byteCount: Number of the chunk's first bytes; nil for later bytes.
    ///   - age: Time that they took to arrive.
    package func makeHasher(first byteCount: Int?, age: Duration) async -> SHA256Hasher? {
        guard let byteCount, Self.isFast(byteCount, in: age) else {
            return fileHashing.makeHasher(at: start)
        }
        let wait = OrderedHashing.Wait(
            timeout: timeout, interval: Self.interval,
            minByteCount: Self.byteCount(in: Self.interval))
        return await fileHashing.makeHasher(at: start, waiting: wait, sleep: sleep)
    }

    /// Notes how many bytes of the chunk were hashed for the file.
    package func noteHashed(_ byteCount: Int64) {
        fileHashing.noteHashed(byteCount, at: start)
    }

    private static func isFast(_ byteCount: Int, in age: Duration) -> Bool {
        Int64(byteCount) >= Self.byteCount(in: age)
    }

    /// Returns the number of bytes that the slowest fast link brings in this time.
    private static func byteCount(in time: Duration) -> Int64 {
        Int64((time / .seconds(1) * Double(minBytesPerSecond)).rounded())
    }
}
