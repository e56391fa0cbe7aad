internal import KedgeLocks

/// A block of memory that gathers small pieces of a stream into large writes.
///
/// Invariant behind the unchecked conformance: a buffer has one user at a time; it is handed over
/// (filler to pool thread and back), never shared.
package final class IOBuffer: @unchecked Sendable {
    private let memory: UnsafeMutableRawBufferPointer
    /// Number of bytes filled, from the start.
    package private(set) var count = 0

    fileprivate init(capacity: Int) {
        memory = .allocate(byteCount: capacity, alignment: 4096)
    }

    deinit { memory.deallocate() }

    /// Number of bytes the buffer can hold.
    package var capacity: Int { memory.count }
    /// Number of bytes that still fit.
    package var freeCount: Int { memory.count - count }

    /// The filled bytes; valid until the buffer is filled again or returned.
    package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<count]) }

    /// Appends as many of the bytes as fit, up to `limit`; returns how many.
    package func append(_ source: UnsafeRawBufferPointer, limit: Int = .max) -> Int {
        let taken = min(source.count, freeCount, limit)
        guard taken > 0 else { return 0 }
        UnsafeMutableRawBufferPointer(rebasing: memory[count..<count + taken])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[..<taken]))
        count += taken
        return taken
    }

    /// Lends the free part, at most `limit` bytes of it; the closure returns how many it filled.
    package func fillFree<Failure: Error>(
        limit: Int = .max, _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) {
        let end = count + min(limit, freeCount)
        count += try body(UnsafeMutableRawBufferPointer(rebasing: memory[count..<end]))
    }

    /// Empties the buffer.
    package func removeAll() { count = 0 }
}

/// Keeps returned buffers for the next stream, up to a bound.
package final class BufferPool: Sendable {
    private let free = Mutex<[IOBuffer]>([])
    private let keptCount: Int
    private let bufferCapacity: Int

    /// - Parameters:
    ///   - bufferCapacity: Size of each buffer in bytes.
    ///   - keptCount: How many unused buffers stay in memory.
    package init(bufferCapacity: Int, keptCount: Int) {
        self.bufferCapacity = bufferCapacity
        self.keptCount = keptCount
    }

    /// An empty buffer.
    package func take() -> IOBuffer {
        free.withLock { $0.popLast() } ?? IOBuffer(capacity: bufferCapacity)
    }

    /// Takes a buffer back.
    package func give(_ buffer: IOBuffer) {
        buffer.removeAll()
        free.withLock { if $0.count < keptCount { $0.append(buffer) } }
    }
}
