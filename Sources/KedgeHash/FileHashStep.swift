/// A chunk's step in the ordered hashing of its file. When the file's hash up to the chunk is
/// available, the chunk's bytes are hashed for the chunk and the file at once. Otherwise they are
/// read back later.
///
/// Chunks wait long for each other only where hashing is the bottleneck. On a slower link the
/// processor has time to read bytes back, and bytes that wait in a socket are lost when the process
/// ends.
package struct FileHashStep: Sendable {
    /// Limits of the waits for the hash.
    package struct Limits: Equatable, Sendable {
        /// Limit of one wait; zero does not wait.
        package var timeout: Duration
        /// Rate in bytes a second below which hashing is not the bottleneck. A wait ends after
        /// ``interval`` when the hash comes closer at a lower rate.
        package var minBytesPerSecond: Int64

        /// Five seconds are the time of seven chunks of 8 MiB at 12 MiB/s.
        package init(timeout: Duration = .seconds(5), minBytesPerSecond: Int64 = 2 << 20) {
            self.timeout = timeout
            self.minBytesPerSecond = minBytesPerSecond
        }

        /// Makes the limits for this processor: half of its speed of hashing, which is measured.
        package static func measured() -> Limits {
            var limits = Limits()
            limits.minBytesPerSecond = max(
                limits.minBytesPerSecond, SHA256PairPath.current.bytesPerSecond / 2)
            return limits
        }
    }

    /// Rate in bytes a second of the slowest link whose chunks wait at all.
    private static let fastBytesPerSecond: Int64 = 2 << 20
    /// Time over which the rate of the hash is measured while a chunk waits.
    package static let interval = Duration.milliseconds(100)

    private let fileHashing: OrderedHashing
    private let start: Int64
    private let limits: Limits
    private let sleep: @Sendable (Duration) async throws -> Void

    /// - Parameters:
    ///   - start: Offset of the chunk's first byte.
    ///   - sleep: Sleeps for a duration; ends early when its task is cancelled.
    package init(
        in fileHashing: OrderedHashing, at start: Int64, limits: Limits,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.fileHashing = fileHashing
        self.start = start
        self.limits = limits
        self.sleep = sleep
    }

    /// Returns the file's hash up to the chunk; nil while it is not available.
    ///
    /// The first bytes of a chunk from a fast link wait for the hash: for ``interval``, and longer
    /// while it comes closer at the speed of hashing. The body is not read meanwhile, which leaves
    /// the processor to the chunks before it.
    ///
    /// - Parameters:
    ///   - byteCount: Number of the chunk's first bytes; nil for later bytes.
    ///   - age: Time that they took to arrive.
    package func makeHasher(first byteCount: Int?, age: Duration) async -> SHA256Hasher? {
        guard let byteCount,
            Int64(byteCount) >= Self.byteCount(in: age, at: Self.fastBytesPerSecond)
        else {
            return fileHashing.makeHasher(at: start)
        }
        let wait = OrderedHashing.Wait(
            timeout: limits.timeout, interval: Self.interval,
            minByteCount: Self.byteCount(in: Self.interval, at: limits.minBytesPerSecond))
        return await fileHashing.makeHasher(at: start, waiting: wait, sleep: sleep)
    }

    /// Notes how many bytes of the chunk were hashed for the file.
    package func noteHashed(_ byteCount: Int64) {
        fileHashing.noteHashed(byteCount, at: start)
    }

    private static func byteCount(in time: Duration, at bytesPerSecond: Int64) -> Int64 {
        Int64((time / .seconds(1) * Double(bytesPerSecond)).rounded())
    }
}
