import KedgeHash
import KedgeModel
import Testing

/// The examples that NIST publishes for FIPS 180-4 (R22).
struct SHA256VectorTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        let name: String
        let message: [UInt8]
        let hex: String

        init(_ name: String, _ message: some Sequence<UInt8>, _ hex: String) {
            self.name = name
            self.message = Array(message)
            self.hex = hex
        }

        var testDescription: String { name }
    }

    static let vectors = [
        Vector("empty", [], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        Vector(
            "abc", "abc".utf8, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        Vector(
            "two blocks", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8,
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
        Vector(
            "three blocks",
            """
            abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn\
            hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu
            """.utf8,
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"),
        Vector(
            "a million a", repeatElement(UInt8(ascii: "a"), count: 1_000_000),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    ]

    @Test(arguments: vectors)
    func `a published message has its published digest`(vector: Vector) {
        #expect(SHA256Hasher.digest(of: vector.message).hex == vector.hex)
        var hasher = SHA256Hasher()
        for byte in vector.message.prefix(200) { hasher.update([byte]) }
        hasher.update(Array(vector.message.dropFirst(200)))
        #expect(hasher.digest().hex == vector.hex)
        #expect(hasher.byteCount == Int64(vector.message.count))
    }

    @Test func `asking for the digest does not end the hash`() {
        var hasher = SHA256Hasher()
        hasher.update(Array("ab".utf8))
        #expect(hasher.digest() == SHA256Hasher.digest(of: Array("ab".utf8)))
        hasher.update(Array("c".utf8))
        #expect(hasher.digest() == SHA256Hasher.digest(of: Array("abc".utf8)))
        #expect(hasher.digest() == hasher.digest())
    }

    @Test func `a copied hash continues independently`() {
        var hasher = SHA256Hasher()
        hasher.update(Array("ab".utf8))
        var copy = hasher
        copy.update(Array("x".utf8))
        hasher.update(Array("c".utf8))
        #expect(hasher.digest() == SHA256Hasher.digest(of: Array("abc".utf8)))
        #expect(copy.digest() == SHA256Hasher.digest(of: Array("abx".utf8)))
        #expect(copy.byteCount == 3)
    }

    @Test func `an update without bytes does not change a hash`() {
        var hasher = SHA256Hasher()
        hasher.update([])
        hasher.update(UnsafeRawBufferPointer(start: nil, count: 0))
        #expect(hasher.byteCount == 0)
        #expect(hasher.digest() == SHA256Hasher.digest(of: []))
    }
}
