internal import KedgeLocks

/// Lends buffers and keeps returned ones for reuse, within a budget.
///
/// The more is lent, the smaller the next buffers are. A few streams get large buffers, which make
/// fast links cheap, and a thousand streams still fit into memory.
package final class BufferPool: Sendable {
    /// A buffer takes at most this fraction (one in `share`) of the remaining budget.
    private static let share = 4

    private struct State {
        var free: [Int: [IOBuffer]] = [:]
        var freeByteCount = 0
        var lentByteCount = 0

        /// Takes a kept buffer of exactly this capacity.
        mutating func reuse(_ capacity: Int) -> IOBuffer? {
            guard let buffer = free[capacity]?.popLast() else { return nil }
            freeByteCount -= capacity
            return buffer
        }

        /// Removes the largest kept buffer.
        mutating func evict() -> IOBuffer? {
            guard let capacity = free.filter({ !$0.value.isEmpty }).keys.max() else { return nil }
            return reuse(capacity)
        }
    }

    private let state = Mutex(State())
    private let budget: Int
    /// Capacities of buffers, each half of the previous one.
    private let capacities: [Int]

    /// - Parameters:
    ///   - bufferCapacity: Size of the largest buffers in bytes.
    ///   - minCapacity: Size of the smallest buffers in bytes; lent even when the budget is used
    ///     up.
    ///   - budget: Total size that all buffers should not exceed, in bytes.
    package init(bufferCapacity: Int, minCapacity: Int, budget: Int) {
        self.budget = budget
        let halves = sequence(first: bufferCapacity) { $0 / 2 >= minCapacity ? $0 / 2 : nil }
        capacities = Array(halves)
    }

    /// A pool of buffers of one size.
    ///
    /// - Parameters:
    ///   - bufferCapacity: Size of each buffer in bytes.
    ///   - keptCount: Number of unused buffers that stay in memory while none is lent.
    package convenience init(bufferCapacity: Int, keptCount: Int) {
        self.init(
            bufferCapacity: bufferCapacity, minCapacity: bufferCapacity,
            budget: bufferCapacity * keptCount)
    }

    /// Size of all lent buffers in bytes.
    package var lentByteCount: Int { state.withLock { $0.lentByteCount } }

    /// Returns an empty buffer.
    ///
    /// - Parameter byteCount: The wanted capacity; the buffer may hold less or more.
    package func take(for byteCount: Int = .max) -> IOBuffer {
        // Freed outside the lock.
        var evicted: [IOBuffer] = []
        defer { evicted.removeAll() }
        return state.withLock { state in
            let capacity = capacity(for: byteCount, lent: state.lentByteCount)
            state.lentByteCount += capacity
            if let buffer = state.reuse(capacity) { return buffer }
            while state.freeByteCount + state.lentByteCount > budget, let buffer = state.evict() {
                evicted.append(buffer)
            }
            return IOBuffer(capacity: capacity)
        }
    }

    /// Returns a buffer to the pool.
    package func give(_ buffer: IOBuffer) {
        buffer.removeAll()
        state.withLock { state in
            state.lentByteCount -= buffer.capacity
            guard state.freeByteCount + state.lentByteCount + buffer.capacity <= budget else {
                return
            }
            state.free[buffer.capacity, default: []].append(buffer)
            state.freeByteCount += buffer.capacity
        }
    }

    /// Frees the buffers that are kept for reuse.
    package func releaseUnused() {
        // Freed outside the lock.
        let unused = state.withLock { state in
            defer { (state.free, state.freeByteCount) = ([:], 0) }
            return state.free
        }
        withExtendedLifetime(unused) {}
    }

    /// The largest capacity that is a fair share of the remaining budget and less than twice the
    /// wanted size.
    private func capacity(for byteCount: Int, lent: Int) -> Int {
        let share = max(0, budget - lent) / Self.share
        let fitting = capacities.first { $0 <= share && $0 / 2 < byteCount }
        return fitting ?? capacities[capacities.count - 1]
    }
}
