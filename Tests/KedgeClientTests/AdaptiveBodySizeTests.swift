import KedgeClient
import KedgeModel
import KedgeTesting
import Testing

struct AdaptiveBodySizeTests {
    private func capabilities(_ change: (inout ServerCapabilities) -> Void = { _ in })
        -> ServerCapabilities
    {
        var capabilities = ServerCapabilities()
        change(&capabilities)
        return capabilities
    }

    @Test func `pieces that get through quickly grow, up to the size of one read`() {
        var size = AdaptiveBodySize(capabilities: capabilities())
        #expect(size.byteCount == AdaptiveBodySize.initial)
        for _ in 0..<9 { size.recordSuccess(in: .seconds(1), byteCount: size.byteCount) }
        #expect(size.byteCount == AdaptiveBodySize.maximum)
        size.recordSuccess(in: .seconds(5), byteCount: size.byteCount)
        #expect(size.byteCount == AdaptiveBodySize.maximum)
        size.recordSuccess(in: .seconds(60), byteCount: size.byteCount)
        #expect(size.byteCount == AdaptiveBodySize.maximum / 2)
    }

    @Test func `a short last piece does not change the piece size`() {
        var size = AdaptiveBodySize(capabilities: capabilities())
        size.recordSuccess(in: .milliseconds(1), byteCount: 10)
        #expect(size.byteCount == AdaptiveBodySize.initial)
    }

    @Test func `pieces shrink to the minimum and are then sent without a checksum`() {
        var size = AdaptiveBodySize(capabilities: capabilities())
        repeat {
            #expect(size.byteCount >= AdaptiveBodySize.minimum)
        } while size.recordBreak(of: size.byteCount)
        size.recordBreak(of: size.byteCount)
        #expect(size.byteCount == AdaptiveBodySize.minimum)
        #expect(!size.carriesChecksum)
        for _ in 0..<150 { size.recordSuccess(in: .seconds(1), byteCount: size.byteCount) }
        #expect(size.byteCount == AdaptiveBodySize.maximum)
        #expect(size.carriesChecksum)
    }

    /// Sends bodies over a link that dies after each of these byte counts, to a server that
    /// discards broken bodies.
    ///
    /// - Returns: The ratio of bytes that crossed the link to bytes that counted.
    private func lossyRatio(lives: [Int64], startingWith first: AdaptiveBodySize) -> Double {
        var size = first
        var (crossed, counted) = (0 as Int64, 0 as Int64)
        for life in lives {
            var left = life
            while size.byteCount <= left {
                left -= size.byteCount
                counted += size.byteCount
                size.recordSuccess(in: .milliseconds(10), byteCount: size.byteCount)
            }
            size.recordBreak(of: size.byteCount)
            crossed += life
        }
        return Double(crossed) / Double(max(1, counted))
    }

    @Test(arguments: [100 << 10, 300 << 10, 1 << 20, 2500 << 10, 20 << 20] as [Int64])
    func `a link that dies after the same number of bytes costs less than a fifth`(life: Int64) {
        let lives = [Int64](repeating: life, count: 40)
        #expect(
            lossyRatio(lives: lives, startingWith: AdaptiveBodySize(capabilities: capabilities()))
                < 1.2)
        let whole = AdaptiveBodySize(chunkSize: 4 << 20)
        #expect(lossyRatio(lives: lives, startingWith: whole) < 1.2)
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `a link that dies after some hundred KiB costs less than a fifth`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let lives = (0..<60).map { _ in Int64.random(in: 300 << 10...2 << 20, using: &generator) }
        #expect(
            lossyRatio(lives: lives, startingWith: AdaptiveBodySize(capabilities: capabilities()))
                < 1.2)
    }

    @Test func `a body after a broken one has a third of the bytes that the server kept`() {
        var size = AdaptiveBodySize(chunkSize: 4 << 20)
        size.recordBreak(of: 4 << 20, survived: 300 << 10)
        #expect(size.byteCount == 100 << 10)
        for _ in 0..<20 { size.recordBreak(of: size.byteCount, survived: 1) }
        #expect(size.byteCount == AdaptiveBodySize.minimum)
        for _ in 0..<99 { size.recordSuccess(in: .zero, byteCount: size.byteCount) }
        #expect(size.byteCount == 4 << 20)
    }

    @Test func `a slow chunk keeps its size, and a piece is never larger than its chunk`() {
        var size = AdaptiveBodySize(chunkSize: 1000)
        size.recordSuccess(in: .seconds(600), byteCount: 1000)
        #expect(size.byteCount == 1000)
        let shrinks = size.recordBreak(of: 1000)
        let isSmaller = size.recordRefusal(of: 1000)
        #expect(!shrinks && !isSmaller && size.byteCount == 1000)
    }

    // A gateway that answers 502 to one request in four does not mean a weak link.
    @Test func `bodies that a gateway refuses do not shrink unless none gets through`() {
        var size = AdaptiveBodySize(chunkSize: 4 << 20)
        for _ in 0..<9 {
            size.recordBreak(of: 4 << 20, isAnswered: true)
            size.recordBreak(of: 4 << 20, isAnswered: true)
            size.recordSuccess(in: .zero, byteCount: 4 << 20)
        }
        #expect(size.byteCount == 4 << 20)
        for _ in 0..<4 { size.recordBreak(of: 4 << 20, isAnswered: true) }
        #expect(size.byteCount == 1 << 20)
        size.recordBreak(of: 1 << 20, survived: 300 << 10, isAnswered: true)
        #expect(size.byteCount < 1 << 20)
    }

    @Test func `a congested server gets pieces of half the size`() {
        var size = AdaptiveBodySize(capabilities: capabilities())
        size.recordCongestion()
        #expect(size.byteCount == AdaptiveBodySize.initial / 2)
    }

    @Test func `a piece size that was refused is not tried again`() {
        var size = AdaptiveBodySize(capabilities: capabilities())
        let isSmaller = size.recordRefusal(of: size.byteCount)
        #expect(isSmaller)
        for _ in 0..<9 { size.recordSuccess(in: .zero, byteCount: size.byteCount) }
        #expect(size.byteCount == AdaptiveBodySize.initial / 2)
    }

    @Test func `a refused piece size is remembered when the server's limits change`() {
        var size = AdaptiveBodySize(capabilities: capabilities())
        _ = size.recordRefusal(of: size.byteCount)
        size.adopt(capabilities { $0.maxAppendSize = 7 << 20 })
        #expect(size.byteCount == AdaptiveBodySize.initial / 2)
        for _ in 0..<9 { size.recordSuccess(in: .zero, byteCount: size.byteCount) }
        #expect(size.byteCount == AdaptiveBodySize.initial / 2)
        size.adopt(capabilities { $0.maxAppendSize = 1000 })
        #expect(size.byteCount == 1000)
        // The server takes no smaller body in any case.
        size.adopt(capabilities { $0.minAppendSize = 20 << 20 })
        #expect(size.byteCount == 20 << 20)
    }

    @Test(
        arguments: [
            (nil, 1000, 1000), (20 << 20, nil, 20 << 20), (5, 1000, 1000), (nil, 0, 1),
            (0, nil, 1 << 20),
            (2000, 1000, 1000), (Int64.max, nil, Int64.max),
        ] as [(Int64?, Int64?, Int64)])
    func `the piece size stays within the server's limits`(
        least: Int64?, most: Int64?, expected: Int64
    ) {
        var size = AdaptiveBodySize(
            capabilities: capabilities {
                $0.minAppendSize = least
                $0.maxAppendSize = most
            })
        #expect(size.byteCount == expected)
        while size.recordBreak(of: size.byteCount) {}
        #expect(size.byteCount >= min(least ?? 0, most ?? .max))
        #expect(size.range(from: 7, ofSize: 10).end <= 10)
        for _ in 0..<70 { size.recordSuccess(in: .zero, byteCount: size.byteCount) }
        #expect(size.byteCount <= max(1, most ?? .max))
    }
}
