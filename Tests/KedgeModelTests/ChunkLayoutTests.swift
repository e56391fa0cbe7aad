import KedgeModel
import KedgeTesting
import Testing

/// R7, R9, R29, R98.
struct ChunkLayoutTests {
    private static let gibibyte: Int64 = 1 << 30

    @Test(
        arguments: [
            (0, 4 << 20, 0), (1, 4 << 20, 1), (4 << 20, 4 << 20, 1), ((4 << 20) + 1, 4 << 20, 2),
            ((4 << 20) - 1, 4 << 20, 1), (12 << 20, 4 << 20, 3), (5 * gibibyte, 4 << 20, 1280),
            (5 * gibibyte + 1, 4 << 20, 1281), (Int64.max, Int64.max, 1), (Int64.max, 1, Int.max),
            (Int64.max, 2, Int.max / 2 + 1), (Int64.max, 4 << 20, 2_199_023_255_552),
        ] as [(Int64, Int64, Int)])
    func `the count is the size divided, rounded up`(size: Int64, chunkSize: Int64, count: Int) {
        #expect(ChunkLayout(fileSize: size, chunkSize: chunkSize).chunkCount == count)
    }

    @Test(
        arguments: [
            (0, 0, 100), (1, 100, 200), (2, 200, 250),
        ] as [(Int, Int64, Int64)])
    func `chunks follow each other and the last is short`(index: Int, start: Int64, end: Int64) {
        let layout = ChunkLayout(fileSize: 250, chunkSize: 100)
        #expect(layout.range(ofChunk: index) == ByteRange(start: start, end: end))
    }

    @Test(arguments: [-1, Int.min, 3, 4, Int(Int32.max), 1 << 53, Int.max])
    func `there is no chunk outside the file`(index: Int) {
        #expect(ChunkLayout(fileSize: 250, chunkSize: 100).range(ofChunk: index) == nil)
        #expect(ChunkLayout(fileSize: 0, chunkSize: 100).range(ofChunk: index) == nil)
    }

    @Test func `a file of no bytes has no first chunk`() {
        #expect(ChunkLayout(fileSize: 0, chunkSize: 100).range(ofChunk: 0) == nil)
    }

    @Test func `a layout near the largest size has a last chunk`() {
        let layout = ChunkLayout(fileSize: .max, chunkSize: 1 << 62)
        #expect(layout.chunkCount == 2)
        #expect(layout.range(ofChunk: 1) == ByteRange(start: 1 << 62, end: .max))
        #expect(
            ChunkLayout(fileSize: .max, chunkSize: 1).range(ofChunk: Int.max - 1)?.byteCount == 1)
    }

    @Test func `a layout without a file size has full chunks up to the maximum count`() {
        let layout = ChunkLayout(fileSize: nil, chunkSize: 100)
        #expect(layout.chunkCount == nil)
        #expect(layout.range(ofChunk: 7) == ByteRange(start: 700, end: 800))
        #expect(layout.range(ofChunk: ChunkLayout.maxChunkCount - 1)?.byteCount == 100)
        #expect(layout.range(ofChunk: ChunkLayout.maxChunkCount) == nil)
        #expect(ChunkLayout(fileSize: nil, chunkSize: .max).range(ofChunk: 1)?.start == .max)
        #expect(ChunkLayout(fileSize: nil, chunkSize: .max).range(ofChunk: 2) == nil)
    }

    @Test(arguments: 1...100 as ClosedRange<UInt64>)
    func `the chunks cover the file without gap or overlap`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let size = Int64.random(in: 0...5000, using: &generator)
        let layout = ChunkLayout(fileSize: size, chunkSize: .random(in: 1...700, using: &generator))
        let count = try #require(layout.chunkCount)
        var end: Int64 = 0
        for index in 0..<count {
            let range = try #require(layout.range(ofChunk: index))
            #expect(range.start == end)
            #expect(!range.isEmpty)
            #expect(layout.index(ofByteAt: range.start) == index)
            #expect(layout.index(ofByteAt: range.end - 1) == index)
            end = range.end
        }
        #expect(end == size)
    }

    @Test(arguments: 1...100 as ClosedRange<UInt64>)
    func `the chunk size grows no further than the maximum chunk count requires`(seed: UInt64)
        throws
    {
        var generator = SplitMix64(seed: seed)
        let preferred = Int64(1) << Int64.random(in: 0...26, using: &generator)
        let size = Int64(generator.next() >> UInt64.random(in: 1...40, using: &generator))
        let chosen = ChunkLayout.chunkSize(preferred: preferred, forFileOf: size)
        let count = try #require(ChunkLayout(fileSize: size, chunkSize: chosen).chunkCount)
        #expect(count <= ChunkLayout.maxChunkCount)
        #expect(chosen % preferred == 0)
        let half = ChunkLayout(fileSize: size, chunkSize: max(1, chosen / 2)).chunkCount ?? 0
        #expect(chosen == preferred || half >= ChunkLayout.maxChunkCount)
    }

    @Test func `a preferred chunk size that suffices is kept, also for a file of unknown size`() {
        #expect(ChunkLayout.chunkSize(preferred: 4 << 20, forFileOf: 5 << 30) == 4 << 20)
        #expect(ChunkLayout.chunkSize(preferred: 4 << 20, forFileOf: nil) == 4 << 20)
        #expect(ChunkLayout.chunkSize(preferred: 1, forFileOf: 0) == 1)
    }

    @Test func `a file of exactly the maximum chunk count keeps the preferred chunk size`() {
        let size = Int64(ChunkLayout.maxChunkCount) << 20
        #expect(ChunkLayout.chunkSize(preferred: 1 << 20, forFileOf: size) == 1 << 20)
    }
}
