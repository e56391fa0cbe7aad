import KedgeEngine
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

struct ReaderSharesTests {
    private static func address(_ number: Int) -> ClientAddress {
        ClientAddress(bytes: [10, 0, UInt8(number / 256), UInt8(number % 256)]) ?? .unknown
    }

    private static func shares(_ rates: [Int?], of addresses: (Int) -> Int) -> ReaderShares {
        var shares = ReaderShares(maxConnectionCount: 20, minBytesPerSecond: 4096)
        for (id, rate) in rates.enumerated() {
            shares.opened(id, by: address(addresses(id)))
            shares.read(id, bytesPerSecond: rate)
        }
        return shares
    }

    @Test func `slow readers are not cut while connections are free`() {
        let shares = Self.shares(Array(repeating: 1, count: 17)) { $0 }
        #expect(shares.slowCount == 17)
        #expect(shares.victims().isEmpty)
    }

    @Test func `the slowest readers are cut until connections are no longer scarce`() {
        let rates: [Int?] = (0..<20).map { 100 * (20 - $0) }
        let shares = Self.shares(rates) { $0 }
        #expect(shares.scarceCount == 18)
        #expect(shares.victims() == [19, 18, 17])
    }

    @Test(arguments: [7000, 4096])
    func `a reader at the minimum rate is never cut`(rate: Int) {
        let shares = Self.shares(Array(repeating: rate, count: 20)) { _ in 1 }
        #expect(shares.victims().isEmpty)
    }

    @Test func `an address with a quarter of all connections loses its slowest readers`() {
        let shares = Self.shares([9, 1, 2, 3, 4, 5, 6, 7]) { $0 == 0 ? 0 : 1 }
        #expect(shares.shareCount == 5)
        #expect(shares.victims() == [1, 2, 3])
    }

    @Test func `a reader whose answer is over is not cut`() {
        var shares = Self.shares(Array(repeating: 1, count: 20)) { $0 }
        for id in 0..<20 { shares.read(id, bytesPerSecond: nil) }
        #expect(shares.victims().isEmpty)
        shares.read(3, bytesPerSecond: 1)
        shares.closed(3)
        shares.read(3, bytesPerSecond: 1)
        #expect(shares.victims().isEmpty && shares.count == 19)
    }

    @Test(arguments: 0..<10 as Range<UInt64>)
    func
        `only slow readers are cut, and only while connections or their address's share are scarce`(
            seed: UInt64
        )
    {
        var generator = SplitMix64(seed: seed)
        var shares = ReaderShares(maxConnectionCount: 20, minBytesPerSecond: 4096)
        var known: [Int: (address: Int, rate: Int?)] = [:]
        for next in 0..<2000 {
            let id = known.keys.sorted().randomElement(using: &generator)
            switch Int.random(in: 0..<6, using: &generator) {
            case 0,
                1 where known.count < 20:
                guard known.count < 20 else { continue }
                let address = Int.random(in: 0..<6, using: &generator)
                shares.opened(next, by: Self.address(address))
                known[next] = (address, nil)
            case 2:
                guard let id else { continue }
                let rate =
                    Bool.random(using: &generator)
                    ? nil : Int.random(in: 0..<8192, using: &generator)
                shares.read(id, bytesPerSecond: rate)
                known[id]?.rate = rate
            case 3:
                guard let id else { continue }
                let address = Int.random(in: 0..<6, using: &generator)
                shares.used(id, by: Self.address(address))
                known[id]?.address = address
            case 4:
                guard let id else { continue }
                shares.closed(id)
                known[id] = nil
            default:
                for victim in shares.victims() {
                    let rate = known[victim]?.rate ?? .max
                    let held = known.values.count { $0.address == known[victim]?.address }
                    #expect(rate < 4096)
                    #expect(known.count >= shares.scarceCount || held >= shares.shareCount)
                }
            }
            #expect(shares.count == known.count)
        }
    }
}
