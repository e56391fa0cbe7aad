internal import Glibc

/// A block of memory that gathers small pieces of a stream into large writes.
///
/// Invariant behind the unchecked conformance: a buffer has one user at a time. It is handed over
/// between the filler and a pool thread, never shared.
package final class IOBuffer: @unchecked Sendable {
    private let memory: UnsafeMutableRawBufferPointer
    /// Number of bytes filled, from the start.
    package private(set) var count = 0

    init(capacity: Int) {
        memory = Self.map(capacity)
    }

    deinit { munmap(memory.baseAddress, memory.count) }

    /// Maps whole pages, which return to the system at once. The allocator would keep them per
    /// thread and fragment them.
    private static func map(_ capacity: Int) -> UnsafeMutableRawBufferPointer {
        let pages = mmap(
            nil, max(1, capacity), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let pages, pages != MAP_FAILED else {
            preconditionFailure("the system has no memory for a buffer of \(capacity) bytes")
        }
        return UnsafeMutableRawBufferPointer(start: pages, count: capacity)
    }

    /// Number of bytes the buffer can hold.
    package var capacity: Int { memory.count }
    /// Number of bytes that still fit.
    package var freeCount: Int { memory.count - count }

    /// The filled bytes; valid until the buffer is filled again or returned.
    package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<count]) }

    /// Appends as many of the bytes as fit, up to `limit`; returns their number.
    package func append(_ source: UnsafeRawBufferPointer, limit: Int = .max) -> Int {
        let taken = min(source.count, freeCount, limit)
        guard taken > 0 else { return 0 }
        UnsafeMutableRawBufferPointer(rebasing: memory[count..<count + taken])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[..<taken]))
        count += taken
        return taken
    }

    /// Lends the free part, at most `limit` bytes of it; the closure returns how many bytes it
    /// filled.
    package func fillFree<Failure: Error>(
        limit: Int = .max, _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) {
        let end = count + min(limit, freeCount)
        count += try body(UnsafeMutableRawBufferPointer(rebasing: memory[count..<end]))
    }

    /// Empties the buffer and lends its memory, for bytes that do not stay in it.
    package func withMemory<Failure: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        removeAll()
        try body(memory)
    }

    /// Empties the buffer.
    package func removeAll() { count = 0 }
}
