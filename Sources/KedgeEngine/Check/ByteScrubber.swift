package import KedgeFiles
internal import KedgeHash
internal import KedgeLocks
internal import KedgeModel

/// The hash of one range, and a running hash over several ranges.
struct RunningHashes: Sendable {
    var range = SHA256Hasher()
    /// Nil after a gap: later bytes cannot belong to it.
    var whole: SHA256Hasher? = SHA256Hasher()
    /// Offset after the last byte that `whole` covers.
    let wholeEnd: Int64

    init(wholeEnd: Int64) { self.wholeEnd = wholeEnd }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        range.update(bytes)
        guard let seen = whole?.byteCount, seen < wholeEnd else { return }
        let count = min(Int64(bytes.count), wholeEnd - seen)
        whole?.update(UnsafeRawBufferPointer(rebasing: bytes[..<Int(count)]))
    }
}

/// Reads stored bytes back and hashes them, one buffer at a time and at a limited rate.
///
/// Drops bytes from the page cache before the read, so that they come from the disk. Drops them
/// again afterwards, so that they do not displace pages that other readers need.
package final class ByteScrubber: Sendable {
    private let pool: BlockingPool
    private let buffers: BufferPool
    private let rate: @Sendable () -> Int64?
    private let pacer: Mutex<RatePacer>
    private let start = ContinuousClock.now

    /// - Parameters:
    ///   - bytesPerSecond: Maximum rate; nil for no limit.
    ///   - bufferCapacity: Size of the one buffer in bytes.
    package convenience init(
        pool: BlockingPool, bytesPerSecond: Int64?, bufferCapacity: Int = 512 << 10
    ) {
        self.init(pool: pool, bufferCapacity: bufferCapacity) { bytesPerSecond }
    }

    /// - Parameter rate: Returns the maximum bytes per second; called before each buffer.
    package init(
        pool: BlockingPool, bufferCapacity: Int = 512 << 10,
        rate: @escaping @Sendable () -> Int64?
    ) {
        self.pool = pool
        self.rate = rate
        pacer = Mutex(RatePacer(bytesPerSecond: rate() ?? .max))
        buffers = BufferPool(bufferCapacity: bufferCapacity, keptCount: 1)
    }

    /// Hashes a range of bytes.
    ///
    /// - Throws: `notFound` when the bytes end early, `CancellationError` within one buffer.
    func hash(
        _ range: ByteRange, of reader: any BlobReader, _ hashes: RunningHashes,
        countingIn tally: CheckTally
    ) async throws -> RunningHashes {
        var hashes = hashes
        hashes.range = SHA256Hasher()
        if hashes.whole?.byteCount != min(range.start, hashes.wholeEnd) { hashes.whole = nil }
        var offset = range.start
        while offset < range.end {
            try Task.checkCancellation()
            let buffer = buffers.take()
            defer { buffers.give(buffer) }
            let rate = rate()
            let step = pacer.withLock { pacer in
                pacer.bytesPerSecond = rate ?? .max
                return pacer.stepByteCount
            }
            let wanted = min(range.end - offset, step, Int64(buffer.capacity))
            await reader.dropCached(wanted, at: offset)
            try await reader.read(into: buffer, at: offset, byteCount: wanted)
            await reader.dropCached(wanted, at: offset)
            let before = hashes
            hashes = try await pool.run {
                var hashes = before
                hashes.update(buffer.bytes)
                return hashes
            }
            let count = Int64(buffer.count)
            offset += count
            tally.count { $0.hashedByteCount += count }
            if rate != nil { try await pause(after: count) }
        }
        return hashes
    }

    private func pause(after byteCount: Int64) async throws {
        let now = start.duration(to: .now)
        let pause = pacer.withLock { $0.pause(after: byteCount, at: now) }
        if pause > .zero { try await Task.sleep(for: pause) }
    }
}
