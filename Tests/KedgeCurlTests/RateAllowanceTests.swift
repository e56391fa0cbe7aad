import KedgeCurl
import Testing

struct RateAllowanceTests {
    private let start = ContinuousClock.now

    private func make(_ rate: Int64?) -> RateAllowance {
        var allowance = RateAllowance(at: start)
        allowance.setRate(rate, at: start)
        return allowance
    }

    @Test(arguments: [1, 100, 1024, 17_000, 1 << 20, 1 << 40] as [Int64])
    func `a body moves at its rate from the first byte on`(rate: Int64) throws {
        var allowance = make(rate)
        var (now, movedCount) = (start, 0)
        for _ in 0..<200 {
            let count = allowance.take(upTo: 512 << 10, at: now)
            movedCount += count
            guard count == 0 else { continue }
            now = try #require(allowance.releaseTime)
            let isReleased = allowance.release(at: now)
            #expect(isReleased)
        }
        let allowedCount = (now - start) / .seconds(1) * Double(rate)
        #expect(Double(movedCount) <= allowedCount + 1)
        #expect(Double(movedCount) >= allowedCount * 0.9)
    }

    @Test(
        arguments: [
            // Few bytes at a low rate, a quarter of a second at a high one.
            (17_000, 4250), (100, 2048), (1 << 20, 1 << 18),
        ] as [(Int64, Int)])
    func `a transfer that did not use its rate catches up on little`(
        rate: Int64, most: Int
    ) {
        var allowance = make(rate)
        let count = allowance.take(upTo: 1 << 30, at: start + .seconds(3600))
        #expect(count == most)
    }

    @Test func `a few bytes wait only for their own time`() throws {
        var allowance = make(1000)
        let count = allowance.take(upTo: 10, at: start)
        #expect(count == 0)
        let wait = try #require(allowance.releaseTime) - start
        #expect(wait > .milliseconds(9))
        #expect(wait < .milliseconds(11))
    }

    @Test func `bytes that arrived together are waited for afterwards`() throws {
        var allowance = make(1000)
        let arrival = start + .seconds(1)
        let isTaken = allowance.takeAll(16_384, at: arrival)
        #expect(isTaken)
        let isNextTaken = allowance.takeAll(1, at: arrival)
        #expect(!isNextTaken)
        #expect(allowance.isHeld)
        let wait = try #require(allowance.releaseTime) - arrival
        #expect(wait > .seconds(15))
        #expect(wait < .seconds(16))
        let isReleased = allowance.release(at: arrival + .seconds(15))
        #expect(!isReleased)
    }

    @Test func `a lower rate does not wait for what moved before it`() throws {
        var allowance = make(nil)
        let count = allowance.take(upTo: 1 << 30, at: start + .seconds(1))
        #expect(count == 1 << 30)
        let change = start + .seconds(2)
        allowance.setRate(1 << 20, at: change)
        _ = allowance.take(upTo: 1 << 20, at: change)
        let wait = try #require(allowance.releaseTime) - change
        #expect(wait < .seconds(1))
    }

    @Test(arguments: [nil, 1 << 20] as [Int64?])
    func `a higher rate ends a hold soon`(rate: Int64?) throws {
        var allowance = make(1)
        _ = allowance.take(upTo: 1 << 20, at: start)
        allowance.setRate(rate, at: start)
        let wait = try #require(allowance.releaseTime) - start
        #expect(wait < .milliseconds(10))
    }
}
