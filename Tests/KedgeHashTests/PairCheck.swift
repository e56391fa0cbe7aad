import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// Bytes for two hashes that are updated together on one path.
enum PairCheck: Sendable, CustomTestStringConvertible {
    /// Two hashes of one published message.
    case published(SHA256VectorTests.Vector)
    /// Two hashes of random bytes, after random bytes of their own, in random pieces.
    case random(seed: UInt64)

    static let all: [PairCheck] =
        SHA256VectorTests.vectors.map(PairCheck.published)
        + (1...60 as ClosedRange<UInt64>).map(PairCheck.random(seed:))

    var testDescription: String {
        switch self {
        case .published(let vector): vector.name
        case .random(let seed): "seed \(seed)"
        }
    }

    /// Compares both hashes with the published digest, or with libcrypto alone.
    func run(_ path: SHA256PairPath) {
        switch self {
        case .published(let vector): Self.check(vector, path)
        case .random(let seed): Self.check(seed: seed, path)
        }
    }

    private static func check(_ vector: SHA256VectorTests.Vector, _ path: SHA256PairPath) {
        var pair = (SHA256Hasher(), SHA256Hasher())
        vector.message.withUnsafeBytes { bytes in
            SHA256Hasher.update(&pair.0, &pair.1, with: bytes, path: path)
        }
        #expect(pair.0.digest().hex == vector.hex)
        #expect(pair.1.digest().hex == vector.hex)
    }

    private static func check(seed: UInt64, _ path: SHA256PairPath) {
        var random = SplitMix64(seed: seed)
        var pair = (SHA256Hasher(), SHA256Hasher())
        // Mostly at the same position in the blocks, as chunk and file are.
        let position = Int.random(in: 0..<64, using: &random)
        let distance = seed.isMultiple(of: 8) ? 1 : 64 * Int.random(in: 0...3, using: &random)
        pair.0.update(random.bytes(position))
        pair.1.update(random.bytes(position + distance))
        var alone = pair
        let bytes = random.bytes(Int.random(in: 0...4000, using: &random))
        bytes.withUnsafeBytes { bytes in
            var start = 0
            while start < bytes.count {
                let count = Int.random(in: 0...min(1500, bytes.count - start), using: &random)
                let piece = UnsafeRawBufferPointer(rebasing: bytes[start..<(start + count)])
                SHA256Hasher.update(&pair.0, &pair.1, with: piece, path: path)
                alone.0.update(piece)
                alone.1.update(piece)
                #expect(pair.0.savedState == alone.0.savedState)
                #expect(pair.1.savedState == alone.1.savedState)
                start += count
            }
        }
        #expect(pair.0.digest() == alone.0.digest())
        #expect(pair.1.digest() == alone.1.digest())
    }
}
