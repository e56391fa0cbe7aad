import KedgeSecrets
import Testing

struct MasterKeysTests {
    private let lines = (0..<3).map { _ in MasterKey.generate() }

    @Test(arguments: ["", "\n", "\n\n"])
    func `the first line is the key that derives, and the others are known`(end: String) throws {
        let keys = try MasterKeys(text: lines.map(\.text).joined(separator: "\n") + end)
        #expect(keys.first.fingerprint == lines[0].fingerprint)
        #expect(keys.fingerprints == Set(lines.map(\.fingerprint)))
        for line in lines {
            #expect(keys[line.fingerprint]?.derive("purpose") == line.derive("purpose"))
        }
        #expect(keys["0000000000000000"] == nil)
    }

    @Test func `a single key needs no line end`() throws {
        let keys = try MasterKeys(text: lines[0].text)
        #expect(keys.first.text == lines[0].text)
        #expect(MasterKeys(lines[0]).fingerprints == keys.fingerprints)
    }

    @Test(arguments: ["", "\n", "\n\n\n"])
    func `a text without a key is refused`(text: String) {
        #expect(throws: MasterKeysError.empty) { try MasterKeys(text: text) }
    }

    @Test(arguments: [" ", "x", "# comment", "\r", "\u{FEFF}", "\0"])
    func `a line that is no key is named`(line: String) {
        #expect(throws: MasterKeysError.invalidLine(3)) {
            try MasterKeys(text: "\(lines[0].text)\n\n\(line)\n\(lines[1].text)\n")
        }
    }

    @Test func `a key with a space or a line end of Windows is refused`() {
        for end in [" ", "\r", "\t", "="] {
            #expect(throws: MasterKeysError.invalidLine(1)) {
                try MasterKeys(text: "\(lines[0].text)\(end)\n")
            }
        }
    }

    @Test func `a repeated key is named`() {
        #expect(throws: MasterKeysError.repeatedLine(2)) {
            try MasterKeys(text: "\(lines[0].text)\n\(lines[0].text)\n")
        }
    }

    @Test func `no description or error has a key`() throws {
        let keys = try MasterKeys(text: lines[0].text)
        var dumped = ""
        dump(keys, to: &dumped)
        for text in ["\(keys)", String(reflecting: keys), dumped] {
            #expect(!text.contains(lines[0].text))
        }
        let almost = String(lines[0].text.dropLast())
        do throws(MasterKeysError) {
            _ = try MasterKeys(text: almost)
            Issue.record("a short key was accepted")
        } catch {
            #expect(!"\(error)".contains(almost.prefix(8)))
        }
    }
}
