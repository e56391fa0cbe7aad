import KedgeModel
import Testing

/// R57, R14: the parsers accept both header forms and nothing else.
struct DigestHeaderTests {
    /// SHA-256 of no bytes.
    private static let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    private static let base64 = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

    private let digest = SHA256Digest(hex: Self.hex)

    @Test(arguments: [
        "sha256=\(hex)", "SHA256=\(hex)", "Sha256=\(hex.uppercased())",
    ])
    func `X-Chunk-Hash accepts the algorithm and the digits in any case`(value: String) {
        #expect(DigestHeader.parseChunkHash(value) == digest)
    }

    @Test(arguments: [
        "", hex, "sha256", "sha256=", "=\(hex)", "sha256:\(hex)", "sha-256=\(hex)", "sha512=\(hex)",
        "md5=\(hex)", "sha256= \(hex)", " sha256=\(hex)", "sha256=\(hex) ", "sha256=\(hex)0",
        "sha256=\(hex.dropLast())", "sha256==\(hex)", "sha256=\(base64)",
        "sha256=\(hex),sha256=\(hex)",
    ])
    func `X-Chunk-Hash refuses every other form`(value: String) {
        #expect(DigestHeader.parseChunkHash(value) == nil)
    }

    @Test(arguments: [
        "sha-256=:\(base64):", "SHA-256=:\(base64):", " sha-256=:\(base64): ",
        "sha-512=:AAAA:, sha-256=:\(base64):", "md5=:AAAA:,\tsha-256=:\(base64):",
        "sha-256=:\(base64):, sha-512=:AAAA:",
    ])
    func `RFC 9530 dictionaries are searched for sha-256`(value: String) {
        #expect(DigestHeader.parseRFC9530(value) == digest)
    }

    @Test(arguments: [
        "", "sha-256", "sha-256=", "sha-256=::", "sha-256=:", "sha-256=\(base64)",
        "sha-256=:\(base64)", "sha-256=\(base64):", "sha-256=:\(base64.dropLast()):",
        "sha-256=:AAAA:", "sha-512=:\(base64):", "sha256=:\(base64):", "sha-256=\"\(base64)\"",
        "sha-256=: \(base64):", ",", "=",
    ])
    func `RFC 9530 values without a complete sha-256 are refused`(value: String) {
        #expect(DigestHeader.parseRFC9530(value) == nil)
    }

    @Test func `written digest headers read back`() throws {
        let digest = try #require(digest)
        #expect(DigestHeader.chunkHash(digest) == "sha256=\(Self.hex)")
        #expect(DigestHeader.rfc9530(digest) == "sha-256=:\(Self.base64):")
        #expect(DigestHeader.parseChunkHash(DigestHeader.chunkHash(digest)) == digest)
        #expect(DigestHeader.parseRFC9530(DigestHeader.rfc9530(digest)) == digest)
    }
}
