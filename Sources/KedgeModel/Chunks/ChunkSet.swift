/// A set of chunk indexes in a bit set, which is cheap to store and compare.
public struct ChunkSet: Sendable {
    private var words: [UInt64] = []
    /// Number of chunks in the set.
    public private(set) var count = 0
    /// Number of consecutive chunks in the set from index 0. Kept up to date, so that reading it is
    /// O(1).
    public private(set) var contiguousCount = 0

    /// Creates an empty set.
    public init() {}

    /// Creates a set of the given indexes.
    public init(_ indexes: some Sequence<Int>) {
        for index in indexes { insert(index) }
    }

    /// Returns true when the chunk is in the set; false for any other index, also one out of
    /// bounds.
    public func contains(_ index: Int) -> Bool {
        guard index >= 0, index / 64 < words.count else { return false }
        return words[index / 64] & (1 << UInt64(index % 64)) != 0
    }

    /// Adds a chunk, in any order; returns false when the set already has it.
    ///
    /// - Precondition: `0 <= index < ChunkLayout.maxChunkCount`.
    @discardableResult
    public mutating func insert(_ index: Int) -> Bool {
        precondition((0..<ChunkLayout.maxChunkCount).contains(index), "a chunk index is in bounds")
        guard !contains(index) else { return false }
        if index / 64 >= words.count {
            words.append(contentsOf: repeatElement(0, count: index / 64 + 1 - words.count))
        }
        words[index / 64] |= 1 << UInt64(index % 64)
        count += 1
        while contains(contiguousCount) { contiguousCount += 1 }
        return true
    }

    /// Removes a chunk; returns false when the set does not have it.
    @discardableResult
    public mutating func remove(_ index: Int) -> Bool {
        guard contains(index) else { return false }
        words[index / 64] &= ~(1 << UInt64(index % 64))
        count -= 1
        contiguousCount = min(contiguousCount, index)
        return true
    }

    /// The indexes in rising order.
    public var indexes: [Int] {
        var result: [Int] = []
        result.reserveCapacity(count)
        forEachRun { result.append(contentsOf: $0) }
        return result
    }

    /// The runs of consecutive indexes in rising order.
    public var ranges: [ClosedRange<Int>] {
        var result: [ClosedRange<Int>] = []
        forEachRun { result.append($0) }
        return result
    }

    /// Returns the runs of indexes below `chunkCount` that are not in the set.
    public func missingRanges(of chunkCount: Int) -> [ClosedRange<Int>] {
        var result: [ClosedRange<Int>] = []
        forEachRun(inside: false, below: chunkCount) { result.append($0) }
        return result
    }

    /// Calls the closure with each run of consecutive indexes in rising order, without building a
    /// list.
    package func forEachRun(_ body: (ClosedRange<Int>) -> Void) {
        forEachRun(inside: true, below: words.count * 64, body)
    }

    private func forEachRun(inside: Bool, below end: Int, _ body: (ClosedRange<Int>) -> Void) {
        var first = firstIndex(inside: inside, from: 0, below: end)
        while first < end {
            let next = firstIndex(inside: !inside, from: first, below: end)
            body(first...(next - 1))
            first = firstIndex(inside: inside, from: next, below: end)
        }
    }

    /// Returns the first index from `start` on that is in the set, or not in it; `end` when there
    /// is none below.
    ///
    /// Checks 64 chunks at a time: a session may have a million.
    private func firstIndex(inside: Bool, from start: Int, below end: Int) -> Int {
        var index = start
        while index < end {
            let word = index / 64 < words.count ? words[index / 64] : 0
            let candidates = (inside ? word : ~word) >> UInt64(index % 64)
            if candidates != 0 { return min(index + candidates.trailingZeroBitCount, end) }
            index = (index / 64 + 1) * 64
        }
        return end
    }
}

extension ChunkSet: Hashable {
    /// Compares the chunks, not the storage: removals may leave empty words at the end.
    public static func == (left: ChunkSet, right: ChunkSet) -> Bool {
        left.serialized == right.serialized
    }

    /// Hashes the chunks.
    public func hash(into hasher: inout Hasher) { hasher.combine(serialized) }
}

extension ChunkSet {
    /// One bit per chunk, the lowest index in the lowest bit of the first byte, without trailing
    /// zero bytes.
    public var serialized: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(words.count * 8)
        for word in words {
            for place in 0..<8 {
                bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(8 * place)))
            }
        }
        while bytes.last == 0 { bytes.removeLast() }
        return bytes
    }

    /// Parses ``serialized`` bytes; nil when they have more chunks than a file may have.
    public init?(serialized bytes: some Collection<UInt8>) {
        guard bytes.count <= ChunkLayout.maxChunkCount / 8 else { return nil }
        for (place, byte) in bytes.enumerated() where byte != 0 {
            for bit in 0..<8 where byte & (1 << UInt8(bit)) != 0 { insert(place * 8 + bit) }
        }
    }
}
