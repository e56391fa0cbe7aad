import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// Examples from FIPS 180-4, RFC 1321 (section A.5) and RFC 3720 (section B.4).
struct ChecksumTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        let algorithm: ChecksumAlgorithm
        let message: [UInt8]
        let hex: String

        init(_ algorithm: ChecksumAlgorithm, _ message: some Sequence<UInt8>, _ hex: String) {
            self.algorithm = algorithm
            self.message = Array(message)
            self.hex = hex
        }

        var testDescription: String { "\(algorithm) of \(message.count) bytes" }
    }

    private static let abc = Array("abc".utf8)
    private static let twoBlocks = Array(
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8)
    private static let digits = Array("123456789".utf8)

    private static let vectors = [
        Vector(.sha1, [], "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        Vector(.sha1, abc, "a9993e364706816aba3e25717850c26c9cd0d89d"),
        Vector(.sha1, twoBlocks, "84983e441c3bd26ebaae4aa1f95129e5e54670f1"),
        Vector(
            .sha256, abc, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        Vector(
            .sha512, abc,
            """
            ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
            2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f
            """),
        Vector(
            .sha512, [],
            """
            cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce\
            47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e
            """),
        Vector(.md5, [], "d41d8cd98f00b204e9800998ecf8427e"),
        Vector(.md5, abc, "900150983cd24fb0d6963f7d28e17f72"),
        Vector(.md5, "message digest".utf8, "f96b697d7cb7938d525a2f31aaf161d0"),
        Vector(.crc32c, [], "00000000"),
        Vector(.crc32c, digits, "e3069283"),
        Vector(.crc32c, [UInt8](repeating: 0, count: 32), "8a9136aa"),
        Vector(.crc32c, [UInt8](repeating: 0xFF, count: 32), "62a8ab43"),
        Vector(.crc32c, 0..<32, "46dd794e"),
        Vector(.crc32c, (0..<32).reversed(), "113fdb5c"),
    ]

    @Test(arguments: vectors)
    func `a published example has its published checksum`(_ vector: Vector) throws {
        var hasher = ChecksumHasher(vector.algorithm)
        hasher.update(vector.message)
        #expect(Hex.encode(hasher.checksum()) == vector.hex)
        #expect(hasher.checksum().count == vector.algorithm.byteCount)
    }

    @Test(arguments: ChecksumAlgorithm.allCases)
    func `a checksum over pieces of any length equals the checksum over all bytes at once`(
        algorithm: ChecksumAlgorithm
    ) {
        var generator = SplitMix64(seed: 11)
        let bytes = generator.bytes(5000)
        var whole = ChecksumHasher(algorithm)
        whole.update(bytes)
        for _ in 0..<20 {
            var pieces = ChecksumHasher(algorithm)
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = min(rest.count, Int.random(in: 0...300, using: &generator))
                pieces.update(Array(rest.prefix(count)))
                rest = rest.dropFirst(count)
            }
            #expect(pieces.checksum() == whole.checksum())
        }
    }

    @Test(arguments: ChecksumAlgorithm.allCases)
    func `a copied checksum hasher continues independently`(algorithm: ChecksumAlgorithm) {
        var first = ChecksumHasher(algorithm)
        first.update([1, 2, 3])
        var second = first
        let before = first.checksum()
        second.update([4])
        #expect(first.checksum() == before)
        first.update([4])
        #expect(first.checksum() == second.checksum())
        #expect(first.checksum() != before)
    }
}
