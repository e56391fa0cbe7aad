import KedgeModel
import KedgeSecrets
import Testing

/// The vectors of RFC 4231, without the one whose code is cut.
struct HMACSHA256Tests {
    struct Vector: Sendable, CustomTestStringConvertible {
        let number: Int
        let key: [UInt8]
        let message: [UInt8]
        let hex: String

        init(_ number: Int, _ key: [UInt8], _ message: [UInt8], _ hex: String) {
            self.number = number
            self.key = key
            self.message = message
            self.hex = hex
        }

        var testDescription: String { "test case \(number)" }
    }

    static let vectors = [
        Vector(
            1, [UInt8](repeating: 0x0B, count: 20), Array("Hi There".utf8),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
        Vector(
            2, Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        Vector(
            3, [UInt8](repeating: 0xAA, count: 20), [UInt8](repeating: 0xDD, count: 50),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
        Vector(
            4, Array(1...25), [UInt8](repeating: 0xCD, count: 50),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
        Vector(
            6, [UInt8](repeating: 0xAA, count: 131),
            Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
        Vector(
            7, [UInt8](repeating: 0xAA, count: 131),
            Array(
                """
                This is a test using a larger than block-size key and a larger than block-size \
                data. The key needs to be hashed before being used by the HMAC algorithm.
                """.utf8),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"),
    ]

    @Test(arguments: vectors)
    func `a published message has its published code`(vector: Vector) {
        let hmac = HMACSHA256(key: vector.key)
        #expect(Hex.encode(hmac.code(of: vector.message)) == vector.hex)
        // A code leaves no trace in the value.
        #expect(Hex.encode(hmac.code(of: vector.message)) == vector.hex)
    }

    @Test func `a key of one block counts as itself, a longer one as its digest`() {
        let block = [UInt8](repeating: 7, count: 64)
        let message: [UInt8] = [1, 2, 3]
        let code = HMACSHA256(key: block).code(of: message)
        #expect(code != HMACSHA256(key: Array(block.dropLast())).code(of: message))
        #expect(code != HMACSHA256(key: block + [0]).code(of: message))
        // Zeros extend a short key (RFC 2104 section 2).
        #expect(HMACSHA256(key: []).code(of: message) == HMACSHA256(key: [0]).code(of: message))
    }
}
