import Foundation
import KedgeSecrets
import KedgeTesting
import Testing

struct Base64URLTests {
    /// RFC 4648 section 10, without padding.
    @Test(arguments: [
        ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"),
        ("fooba", "Zm9vYmE"), ("foobar", "Zm9vYmFy"),
    ])
    func `the vectors of RFC 4648 are encoded and decoded`(plain: String, text: String) {
        #expect(Base64URL.encode(Array(plain.utf8)) == text)
        #expect(Base64URL.decode(text) == Array(plain.utf8))
    }

    @Test func `the two characters of its own are encoded and decoded`() {
        #expect(Base64URL.encode([0xFB, 0xFF, 0xBF]) == "-_-_")
        #expect(Base64URL.decode("-_-_") == [0xFB, 0xFF, 0xBF])
    }

    @Test(arguments: [
        "Z", "Zm9vY", "Zg==", "Zg=", "=", "====", "+/+/", "Zm9 ", " Zm9v", "Zm9v\n", "Zm9v\u{0}",
        "Zm9é", "Zm.v", "Zh", "Zm9", "Zi", "__9",
    ])
    func `text with padding, hidden bits or foreign characters is refused`(text: String) {
        #expect(Base64URL.decode(text) == nil)
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `text equals Foundation's in the other alphabet and reads back`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let bytes = generator.bytes(Int.random(in: 0...100, using: &generator))
        let expected = Data(bytes).base64EncodedString()
            .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
        #expect(Base64URL.encode(bytes) == expected)
        #expect(Base64URL.decode(expected) == bytes)
    }

    @Test func `each value has one text: no other last character gives its bytes`() {
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        let texts = alphabet.map { "Zm9v" + String($0) }
        #expect(texts.allSatisfy { Base64URL.decode($0) == nil })
        let oneByte = alphabet.compactMap { Base64URL.decode("Z" + String($0)) }
        #expect(oneByte.count == 4)
        #expect(Set(oneByte).count == 4)
    }
}
