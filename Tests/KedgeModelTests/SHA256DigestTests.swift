import Foundation
import KedgeModel
import Testing

struct SHA256DigestTests {
    private static let hex = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff"
    private static let bytes = [UInt8](0...30) + [255]

    @Test func `hexadecimal text in any case and bytes make the same digest`() throws {
        let digest = try #require(SHA256Digest(hex: Self.hex))
        #expect(digest == SHA256Digest(hex: Self.hex.uppercased()))
        #expect(digest == SHA256Digest(bytes: Self.bytes))
        #expect(digest.hex == Self.hex)
        #expect(digest.description == Self.hex)
        #expect(digest.bytes == Self.bytes)
        #expect(digest.hashValue == SHA256Digest(bytes: Self.bytes)?.hashValue)
    }

    private static let illFormed: [String] = [
        "", "00", String(hex.dropLast()), "\(hex)0", "\(hex)00", "g\(hex.dropFirst())",
        " \(hex.dropFirst())", "é\(hex.dropFirst(2))", "sha256=\(hex.dropFirst(7))",
    ]

    @Test(arguments: illFormed)
    func `text that is not 64 hexadecimal digits is no digest`(text: String) {
        #expect(SHA256Digest(hex: text) == nil)
    }

    @Test(arguments: [0, 1, 31, 33, 64])
    func `bytes of any other length are no digest`(count: Int) {
        #expect(SHA256Digest(bytes: [UInt8](repeating: 0, count: count)) == nil)
    }

    @Test(arguments: 0..<32)
    func `digests that differ in one byte are not equal`(place: Int) {
        var other = Self.bytes
        other[place] ^= 1
        #expect(SHA256Digest(bytes: other) != SHA256Digest(bytes: Self.bytes))
        #expect(SHA256Digest(bytes: other)?.bytes == other)
    }

    @Test func `in JSON a digest is its text, and other text is refused`() throws {
        let digest = try #require(SHA256Digest(hex: Self.hex))
        let text = String(decoding: try JSONEncoder().encode([digest]), as: UTF8.self)
        #expect(text == "[\"\(Self.hex)\"]")
        #expect(try JSONDecoder().decode([SHA256Digest].self, from: Data(text.utf8)) == [digest])
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([SHA256Digest].self, from: Data(#"["abc"]"#.utf8))
        }
    }
}
