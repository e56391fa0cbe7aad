internal import KedgeLocks

/// Lends buffers, and keeps returned ones for the next stream, within a budget.
///
/// The more is lent, the smaller are the buffers that are lent next: few streams get large ones, which
/// make fast links cheap, and a thousand streams still fit into memory.
package final class BufferPool: Sendable {
    /// A buffer takes at most this part of what is left of the budget.
    private static let share = 4

    private struct State {
        var free: [Int: [IOBuffer]] = [:]
        var freeByteCount = 0
        var lentByteCount = 0

        /// A kept buffer of exactly this capacity.
        mutating func reuse(_ capacity: Int) -> IOBuffer? {
            guard let buffer = free[capacity]?.popLast() else { return nil }
            freeByteCount -= capacity
            return buffer
        }

        /// Takes the largest kept buffer out.
        mutating func evict() -> IOBuffer? {
            guard let capacity = free.filter({ !$0.value.isEmpty }).keys.max() else { return nil }
            return reuse(capacity)
        }
    }

    private let state = Mutex(State())
    private let budget: Int
    /// Capacities of buffers, each half of the one before.
    private let capacities: [Int]

    /// - Parameters:
    ///   - bufferCapacity: Size of the largest buffers in bytes.
    ///   - minCapacity: Size of the smallest ones; lent even when the budget is used up.
    ///   - budget: Bytes that all buffers together should take.
    package init(bufferCapacity: Int, minCapacity: Int, budget: Int) {
        self.budget = budget
        let halves = sequence(first: bufferCapacity) { $0 / 2 >= minCapacity ? $0 / 2 : nil }
        capacities = Array(halves)
    }

    /// A pool of buffers of one size.
    ///
    /// - Parameters:
    ///   - bufferCapacity: Size of each buffer in bytes.
    ///   - keptCount: How many unused buffers stay in memory while none is lent.
    package convenience init(bufferCapacity: Int, keptCount: Int) {
        self.init(
            bufferCapacity: bufferCapacity, minCapacity: bufferCapacity,
            budget: bufferCapacity * keptCount)
    }

    /// An empty buffer.
    ///
    /// - Parameter byteCount: How much it should hold; it may hold less, or a little more.
    package func take(for byteCount: Int = .max) -> IOBuffer {
        // Freed outside of the lock.
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

    /// Takes a buffer back.
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

    /// Frees the buffers that are kept for the next stream.
    package func releaseUnused() {
        // Freed outside of the lock.
        let unused = state.withLock { state in
            defer { (state.free, state.freeByteCount) = ([:], 0) }
            return state.free
        }
        withExtendedLifetime(unused) {}
    }

    /// The largest capacity that is a fair share of what is left, and not twice of what is wanted.
    private func capacity(for byteCount: Int, lent: Int) -> Int {
        let share = max(0, budget - lent) / Self.share
        let fitting = capacities.first { $0 <= share && $0 / 2 < byteCount }
        return fitting ?? capacities[capacities.count - 1]
    }
}
