import KedgeModel
import KedgeTesting
import Testing

/// R30, R127.
struct ChunkSetTests {
    /// The reference: a plain set of indexes.
    private struct Model {
        var indexes: Set<Int> = []
        var contiguousCount: Int { (0...).first { !indexes.contains($0) } ?? 0 }

        func runs(below end: Int, inside: Bool) -> [ClosedRange<Int>] {
            var result: [ClosedRange<Int>] = []
            for index in 0..<end where indexes.contains(index) == inside {
                if let last = result.last, last.upperBound == index - 1 {
                    result[result.count - 1] = last.lowerBound...index
                } else {
                    result.append(index...index)
                }
            }
            return result
        }
    }

    @Test(arguments: 1...100 as ClosedRange<UInt64>)
    func `a chunk set agrees with a set of integers after any inserts and removals`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let bound = [3, 64, 65, 200, 1000].randomElement(using: &generator) ?? 64
        var set = ChunkSet()
        var model = Model()
        for _ in 0..<300 {
            let index = Int.random(in: 0..<bound, using: &generator)
            if Int.random(in: 0..<4, using: &generator) > 0 {
                let isNew = set.insert(index)
                #expect(isNew == model.indexes.insert(index).inserted)
            } else {
                let wasThere = set.remove(index)
                #expect(wasThere == (model.indexes.remove(index) != nil))
            }
            #expect(set.count == model.indexes.count)
            #expect(set.contiguousCount == model.contiguousCount)
        }
        #expect((0..<bound).allSatisfy { set.contains($0) == model.indexes.contains($0) })
        #expect(set.indexes == model.indexes.sorted())
        #expect(set.ranges == model.runs(below: bound, inside: true))
        #expect(set.missingRanges(of: bound) == model.runs(below: bound, inside: false))
    }

    @Test(arguments: 1...50 as ClosedRange<UInt64>)
    func `a chunk set reads back from its bytes, whatever order it was filled in`(seed: UInt64)
        throws
    {
        var generator = SplitMix64(seed: seed)
        let indexes = Set((0..<60).map { _ in Int.random(in: 0..<500, using: &generator) })
        let set = ChunkSet(indexes.shuffled(using: &generator))
        let read = try #require(ChunkSet(serialized: set.serialized))
        #expect(read == set)
        #expect(read == ChunkSet(indexes.sorted()))
        #expect(read.hashValue == set.hashValue)
        #expect(read.contiguousCount == set.contiguousCount)
        #expect(read.count == indexes.count)
    }

    @Test(
        arguments: [
            ([], []), ([0], [1]), ([7], [0x80]), ([8], [0, 1]), ([0, 1, 2, 9], [7, 2]),
        ] as [([Int], [UInt8])])
    func `a serialized chunk set has one bit per chunk, lowest first, without zeros at the end`(
        indexes: [Int], bytes: [UInt8]
    ) {
        #expect(ChunkSet(indexes).serialized == bytes)
        #expect(ChunkSet(serialized: bytes + [0, 0])?.indexes == indexes)
    }

    @Test func `a chunk set whose last chunk was removed equals one that never had it`() {
        var set = ChunkSet([1, 900])
        set.remove(900)
        #expect(set == ChunkSet([1]))
    }

    @Test func `bytes that name more chunks than a file may have are refused`() {
        let full = [UInt8](repeating: 255, count: ChunkLayout.maxChunkCount / 8)
        #expect(ChunkSet(serialized: full)?.contiguousCount == ChunkLayout.maxChunkCount)
        #expect(ChunkSet(serialized: full + [0]) == nil)
    }

    @Test(arguments: [-1, Int.min, 64, 1 << 53, Int.max])
    func `a chunk set does not contain an index that was never inserted`(index: Int) {
        var set = ChunkSet([0, 63])
        let wasThere = set.remove(index)
        #expect(!set.contains(index))
        #expect(!wasThere)
    }

    @Test func `runs of received and missing chunks are each other's complement`() {
        // R61: a sparse list.
        let set = ChunkSet([5, 0, 2, 1])
        #expect(set.indexes == [0, 1, 2, 5])
        #expect(set.ranges == [0...2, 5...5])
        #expect(set.missingRanges(of: 8) == [3...4, 6...7])
        #expect(set.missingRanges(of: 0) == [])
        #expect(ChunkSet().missingRanges(of: 2) == [0...1])
        #expect(ChunkSet().ranges == [])
    }
}
