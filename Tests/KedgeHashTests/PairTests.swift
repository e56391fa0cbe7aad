import KedgeHash
import KedgeTesting
import Testing

/// R22: a chunk and its file are hashed together; libcrypto alone is the reference.
struct PairTests {
    /// Bytes that each hash has seen before, then the pieces. A block of SHA-256 has 64 bytes.
    private static let cases: [(first: Int, second: Int, pieces: [Int])] = [
        (0, 0, [0, 1, 63, 64, 65, 128, 1000]),
        (0, 64, [64, 64, 640]),
        (0, 4_194_304, [65_536, 100_000]),
        (17, 17, [46, 1, 1, 200]),
        (17, 81, [47, 64, 3]),
        // Chunks of an odd size put the two hashes at different positions in their blocks.
        (0, 1, [64, 1, 127]),
        (63, 5, [1000, 1000]),
    ]

    @Test(arguments: cases)
    func `two hashes updated together equal the hashes updated alone`(
        first: Int, second: Int, pieces: [Int]
    ) {
        var random = SplitMix64(seed: UInt64(first &* 31 &+ second))
        func bytes(_ count: Int) -> [UInt8] {
            (0..<count).map { _ in .random(in: 0...255, using: &random) }
        }
        let (firstStart, secondStart) = (bytes(first), bytes(second))
        var pair = (SHA256Hasher(), SHA256Hasher())
        var alone = (SHA256Hasher(), SHA256Hasher())
        pair.0.update(firstStart)
        alone.0.update(firstStart)
        pair.1.update(secondStart)
        alone.1.update(secondStart)
        for count in pieces {
            let piece = bytes(count)
            piece.withUnsafeBytes { SHA256Hasher.update(&pair.0, &pair.1, with: $0) }
            alone.0.update(piece)
            alone.1.update(piece)
            #expect(pair.0.digest() == alone.0.digest())
            #expect(pair.1.digest() == alone.1.digest())
            #expect(pair.0.savedState == alone.0.savedState)
            #expect(pair.1.byteCount == alone.1.byteCount)
        }
    }

    @Test func `two hashes are updated from memory at any alignment`() {
        var random = SplitMix64(seed: 7)
        let bytes = (0..<1024).map { _ in UInt8.random(in: 0...255, using: &random) }
        bytes.withUnsafeBytes { bytes in
            for start in 0..<64 {
                var pair = (SHA256Hasher(), SHA256Hasher())
                var alone = SHA256Hasher()
                let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
                SHA256Hasher.update(&pair.0, &pair.1, with: rest)
                alone.update(rest)
                #expect(pair.0.digest() == alone.digest())
                #expect(pair.1.digest() == alone.digest())
            }
        }
    }
}
