import Foundation
import KedgeModel
import KedgeTesting
import Testing

struct HexadecimalTests {
    @Test(
        arguments: [
            ([], ""), ([0], "00"), ([0x0F], "0f"), ([0xA0], "a0"),
            ([0xDE, 0xAD, 0xBE, 0xEF], "deadbeef"),
        ] as [([UInt8], String)])
    func `hexadecimal digits are written in lower case and read in any case`(
        bytes: [UInt8], text: String
    ) {
        #expect(Hex.encode(bytes) == text)
        #expect(Hex.decode(text) == bytes)
        #expect(Hex.decode(text.uppercased()) == bytes)
    }

    @Test(arguments: [
        "0", "000", "0g", "g0", " 00", "00 ", "0x00", "+1", "-1", "\u{0}0", "é", "٠١",
    ])
    func `text other than pairs of hexadecimal ASCII digits is refused`(text: String) {
        #expect(Hex.decode(text) == nil)
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `hexadecimal text reads back as the same bytes`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let bytes = generator.bytes(Int.random(in: 0...100, using: &generator))
        #expect(Hex.decode(Hex.encode(bytes)) == bytes)
    }
}

struct Base64Tests {
    /// RFC 4648 section 10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
    ])
    func `the vectors of RFC 4648 are encoded and decoded`(plain: String, text: String) {
        #expect(Base64.encode(Array(plain.utf8)) == text)
        #expect(Base64.decode(text) == Array(plain.utf8))
    }

    @Test(arguments: [
        "Z", "Zg", "Zg=", "Zg===", "====", "=", "Zg==Zg==", "Z===", "Zm=v", "=Zm9", "Zm9v=", "Zm9 ",
        " Zm9v", "Zm9v\n", "Zm-_", "Zm9é", "Zh==", "Zm9=",
    ])
    func `Base64 with misplaced padding or hidden bits is refused`(text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `Base64 text equals Foundation's and reads back`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let bytes = generator.bytes(Int.random(in: 0...100, using: &generator))
        #expect(Base64.encode(bytes) == Data(bytes).base64EncodedString())
        #expect(Base64.decode(Base64.encode(bytes)) == bytes)
    }
}
