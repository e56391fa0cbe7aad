import KedgeIdentity
import KedgeModel
import KedgeSecrets
import Testing

struct APITokenTests {
    private static let body = "kdg_0123456789ab_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
    private static let text = body + "_0B0xpI"

    private static let otherForms: [String] = [
        " \(text)", "\(text) ", "\(text)\n", "\(text)0", "Kdg_\(text.dropFirst(4))",
        "kdg-\(text.dropFirst(4))", text.uppercased(), "eyJhbGciOiJIUzI1NiJ9.e30.x",
    ]

    private static func error(of text: String) -> APITokenError? {
        do throws(APITokenError) {
            _ = try APIToken.parse(text)
            return nil
        } catch {
            return error
        }
    }

    /// Returns the text with its right checksum.
    private static func withChecksum(_ body: String) -> String {
        "\(body)_\(Base62.encode(CRC32.checksum(of: body.utf8), width: 6))"
    }

    /// The text and the digest were computed with Python's zlib and hashlib.
    @Test func `the form of a token and the digest of its secret never change`() throws {
        let token = try APIToken.parse(Self.text)
        #expect(token.id.text == "0123456789ab")
        #expect(
            token.secretDigest.hex
                == "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd")
        #expect(token.text == Self.text)
        #expect(Self.withChecksum(Self.body) == Self.text)
    }

    @Test func `new tokens are distinct and read back`() throws {
        let tokens = (0..<1000).map { _ in APIToken.generate() }
        #expect(Set(tokens.map(\.id)).count == tokens.count)
        #expect(Set(tokens.map(\.secretDigest)).count == tokens.count)
        for token in tokens {
            let parsed = try APIToken.parse(token.text)
            #expect(parsed.id == token.id && parsed.secretDigest == token.secretDigest)
        }
    }

    @Test func `the checksum detects each mistyped character`() {
        let characters = Array(
            "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_ ".utf8)
        let right = Array(Self.text.utf8)
        // The places of the prefix and of the two separators.
        let form: Set<Int> = [0, 1, 2, 3, 16, 60]
        var missed: [String] = []
        for place in right.indices {
            for character in characters where character != right[place] {
                var wrong = right
                wrong[place] = character
                let text = String(decoding: wrong, as: UTF8.self)
                let expected: APITokenError = form.contains(place) ? .malformed : .checksumMismatch
                if Self.error(of: text) != expected { missed.append(text) }
            }
        }
        #expect(missed.isEmpty)
    }

    @Test func `the checksum detects two exchanged neighbors`() {
        let right = Array(Self.text.utf8)
        for place in right.indices.dropLast() where right[place] != right[place + 1] {
            var wrong = right
            wrong.swapAt(place, place + 1)
            #expect(Self.error(of: String(decoding: wrong, as: UTF8.self)) != nil)
        }
    }

    @Test func `every part of a token is malformed`() {
        for count in 0..<Self.text.utf8.count {
            #expect(Self.error(of: String(Self.text.prefix(count))) == .malformed)
            #expect(Self.error(of: String(Self.text.suffix(count))) == .malformed)
        }
    }

    @Test(arguments: otherForms)
    func `text of another form is malformed`(text: String) {
        #expect(Self.error(of: text) == .malformed)
    }

    /// A right checksum does not make other parts right.
    @Test(arguments: [
        "kdg_0123456789a-_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        "kdg_0123456789a__AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        "kdg_0123456789ab_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9",
        "kdg_0123456789ab_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh=",
        "kdg_0123456789ab_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+",
    ])
    func `a wrong id or secret with its checksum is malformed`(body: String) {
        #expect(Self.error(of: Self.withChecksum(body)) == .malformed)
    }

    @Test func `no description or dump has the secret`() throws {
        let token = try APIToken.parse(Self.text)
        var dumped = ""
        dump(token, to: &dumped)
        for text in ["\(token)", String(reflecting: token), dumped] {
            #expect(text.contains("kdg_0123456789ab_"))
            #expect(!text.contains("AAEC"))
            #expect(!text.contains("31"))
        }
    }
}
