import KedgeModel
import KedgeSecrets
import Testing

struct MasterKeyTests {
    private static let line = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

    private func key() throws -> MasterKey { try #require(MasterKey(text: Self.line)) }

    @Test func `a line of a key file reads back`() throws {
        #expect(try key().text == Self.line)
        let other = MasterKey.generate()
        #expect(MasterKey(text: other.text)?.fingerprint == other.fingerprint)
    }

    @Test(arguments: ["", "AAECAwQ", line + "=", " " + line, line + "\n", line + "A"])
    func `any other line is refused`(text: String) {
        #expect(MasterKey(text: text) == nil)
    }

    /// Computed with Python's hmac. A change would make every link of a service invalid.
    @Test func `the derivation of keys never changes`() throws {
        #expect(try key().fingerprint == "dedd76b65682782d")
        let derived = try Hex.encode(key().derive("kedge link k1"))
        #expect(derived == "42564fad6259e246a4f93d7b868bbd3775cd18bdaf389fa9f8bdc6173d9d1b7e")
    }

    @Test func `purposes and keys give different bytes`() throws {
        let key = try key()
        #expect(key.derive("one") != key.derive("two"))
        #expect(MasterKey.generate().derive("one") != MasterKey.generate().derive("one"))
    }

    @Test func `no description or dump has the key`() throws {
        let key = try key()
        var dumped = ""
        dump(key, to: &dumped)
        for text in ["\(key)", String(reflecting: key), dumped] {
            #expect(!text.contains(Self.line))
            // The last byte, as a dump of the bytes would have it.
            #expect(!text.contains("31"))
        }
        #expect("\(key)".contains(key.fingerprint))
    }
}
