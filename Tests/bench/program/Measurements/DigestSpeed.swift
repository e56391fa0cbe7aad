/// The speed of SHA-256 with libcrypto on this machine when nothing else runs.
enum DigestSpeed {
    private static let bufferByteCount = 1 << 20
    private static let sampleSeconds = 0.4

    /// Measures MiB a second of all threads together, each over warm memory of its own.
    static func measure(threads: Int) throws -> Double {
        let speeds = try concurrently(threads) { _ in
            let buffer = [UInt8](repeating: 0x5a, count: bufferByteCount)
            var digest = LibcryptoDigest()
            var count = 0
            let began = ContinuousClock.now
            while elapsedSeconds(since: began) < sampleSeconds {
                buffer.withUnsafeBytes { digest.update($0) }
                count += 1
            }
            return Double((count * bufferByteCount) >> 20) / elapsedSeconds(since: began)
        }
        return speeds.reduce(0, +)
    }
}

/// Number of passes of SHA-256 over each byte of a transfer, by side: for the chunk's digest and
/// the file's.
///
/// The unit is a pass of libcrypto. Where a side computes both digests in one pass that shares
/// work, it may be faster than this floor, which stays the cost of two plain digests.
enum DigestPasses {
    static let serverOfUpload = 2
    static let clientOfUpload = 2
    static let clientOfDownload = 2
}

extension Row.Floor {
    /// The speed of a transfer with no other work than hashing, spread over all cores.
    ///
    /// - Parameter speeds: Samples of all cores together, taken between those of the transfer.
    static func digests(byteCount: Int, passes: Int, speeds: [Double]) -> Row.Floor {
        let speed = Series.median(of: speeds)
        let size = Double(byteCount) / Double(1 << 20)
        let cores = Machine.coreCount
        let perCore = speed / Double(cores)
        let seconds = size * Double(passes) / speed
        return Row.Floor(
            value: size / seconds,
            formula: """
                \(size.formatted) MiB x \(passes) passes of SHA-256 / \
                (\(perCore.formatted) MiB/s x \(cores) cores) = \(seconds.formatted) s
                """)
    }
}
