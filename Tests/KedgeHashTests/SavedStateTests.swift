import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// R71: the state of a hash in the middle of a file survives the process.
struct SavedStateTests {
    private static let seeds = 1...100 as ClosedRange<UInt64>

    /// Returns the bytes cut at random places; a piece may be empty.
    private static func pieces(
        of bytes: [UInt8], using generator: inout SplitMix64
    ) -> [[UInt8]] {
        let cutCount = Int.random(in: 0...12, using: &generator)
        let cuts = (0..<cutCount).map { _ in Int.random(in: 0...bytes.count, using: &generator) }
        let ends = ([0, bytes.count] + cuts).sorted()
        return zip(ends, ends.dropFirst()).map { Array(bytes[$0..<$1]) }
    }

    @Test(arguments: seeds)
    func `a hash has the same digest for any split of the bytes`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let bytes = generator.bytes(Int.random(in: 0...1000, using: &generator))
        var hasher = SHA256Hasher()
        for piece in Self.pieces(of: bytes, using: &generator) { hasher.update(piece) }
        #expect(hasher.digest() == SHA256Hasher.digest(of: bytes))
    }

    @Test(arguments: seeds)
    func `a hash that is saved and restored between any two bytes has the same digest`(seed: UInt64)
        throws
    {
        var generator = SplitMix64(seed: seed)
        let bytes = generator.bytes(Int.random(in: 0...1000, using: &generator))
        var hasher = SHA256Hasher()
        for piece in Self.pieces(of: bytes, using: &generator) {
            hasher.update(piece)
            let state = hasher.savedState
            // The state passes through plain bytes, as in a database.
            hasher = try #require(SHA256Hasher(savedState: Array(state)))
            #expect(hasher.savedState == state)
        }
        #expect(hasher.byteCount == Int64(bytes.count))
        #expect(hasher.digest() == SHA256Hasher.digest(of: bytes))
    }

    @Test(arguments: [0, 1, 63, 64, 65, 127, 128, 129])
    func `a saved state has 41 bytes and those of the unfinished block`(count: Int) throws {
        let bytes = [UInt8](repeating: 7, count: count)
        var hasher = SHA256Hasher()
        hasher.update(bytes)
        #expect(hasher.savedState.count == 41 + count % 64)
        var restored = try #require(SHA256Hasher(savedState: hasher.savedState))
        restored.update([1])
        #expect(restored.digest() == SHA256Hasher.digest(of: bytes + [1]))
    }

    @Test(arguments: [1 << 29, 1 << 32, 5 << 30, (1 << 40) + 64] as [Int64])
    func `a saved state counts hashed bytes beyond 32 bits`(count: Int64) throws {
        // The hash words need not come from that many bytes: only the length matters here.
        var state = SHA256Hasher().savedState
        state.replaceSubrange(33..<41, with: withUnsafeBytes(of: count.bigEndian) { Array($0) })
        let hasher = try #require(SHA256Hasher(savedState: state))
        #expect(hasher.byteCount == count)
        #expect(hasher.savedState == state)
        // FIPS 180-4 hashes the length, so states that differ only in it have different digests.
        #expect(hasher.digest() != SHA256Hasher().digest())
        state[38] ^= 0x80
        #expect(SHA256Hasher(savedState: state)?.digest() != hasher.digest())
    }

    private static let damaged: [[UInt8]] = {
        var hasher = SHA256Hasher()
        hasher.update([UInt8](repeating: 1, count: 70))
        let good = hasher.savedState
        var otherVersion = good
        otherVersion[0] = 2
        var otherLength = good
        otherLength[40] ^= 1
        var negative = good
        negative[33] = 0x80
        var tooLong = good
        tooLong[33] = 0x7F
        return [
            [], [1], Array(good.prefix(40)), Array(good.prefix(41)), Array(good.dropLast()),
            good + [0], Array(good.dropFirst()), otherVersion, otherLength, negative, tooLong,
            [UInt8](repeating: 255, count: 104), [UInt8](repeating: 1, count: 100_000),
        ]
    }()

    @Test(arguments: damaged)
    func `a damaged saved state is refused`(state: [UInt8]) {
        #expect(SHA256Hasher(savedState: state) == nil)
    }

    @Test func `a saved state is refused as that of another number of bytes`() {
        var hasher = SHA256Hasher()
        hasher.update([UInt8](repeating: 1, count: 70))
        let state = hasher.savedState
        #expect(SHA256Hasher(savedState: state, byteCount: 70)?.savedState == state)
        #expect(SHA256Hasher(savedState: state, byteCount: 69) == nil)
        #expect(SHA256Hasher(savedState: [], byteCount: 0) == nil)
    }

    @Test(arguments: seeds)
    func `random bytes are a saved state only when length and rest fit each other`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let length = generator.next() >> UInt64.random(in: 0...60, using: &generator)
        let fits = Bool.random(using: &generator)
        let rest = Int(length % 64) + (fits ? 0 : 1)
        let lengthBytes = (0..<8).map { UInt8(truncatingIfNeeded: length >> (56 - 8 * $0)) }
        let state = [1] + generator.bytes(32) + lengthBytes + generator.bytes(rest)
        let isTaken = fits && length <= UInt64(Int64.max / 8)
        #expect(SHA256Hasher(savedState: state)?.savedState == (isTaken ? state : nil))
    }
}
