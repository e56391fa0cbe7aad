import Foundation
import KedgeModel
import Testing

struct ControlCharactersTests {
    private static let steering: [Unicode.Scalar] = [
        "\u{7F}", "\u{80}", "\u{85}", "\u{9B}", "\u{9F}", "\u{61C}", "\u{200E}", "\u{200F}",
        "\u{2028}", "\u{2029}", "\u{202A}", "\u{202B}", "\u{202C}", "\u{202D}", "\u{202E}",
        "\u{2066}", "\u{2067}", "\u{2068}", "\u{2069}", "\u{FEFF}", "\u{0}", "\u{1B}", "\n",
    ]

    @Test(arguments: steering)
    func `JSON escapes a character that steers a terminal, with the same meaning`(
        scalar: Unicode.Scalar
    ) throws {
        let text = ["a\(scalar)b", "\(scalar)"]
        let json = ControlCharacters.escaped(json: try JSONEncoder().encode(text))
        #expect(
            !String(decoding: json, as: UTF8.self).unicodeScalars.contains(
                where: ControlCharacters.steers))
        #expect(try JSONDecoder().decode([String].self, from: Data(json)) == text)
    }

    @Test(arguments: steering)
    func `a log line escapes a character that steers a terminal`(scalar: Unicode.Scalar) {
        let escape = "a\\u{\(String(scalar.value, radix: 16))}b"
        #expect(ControlCharacters.escaped("a\(scalar)b") == escape)
    }

    @Test(arguments: [
        "", "a b", "日本語 ☂", "👩‍👩‍👧", "می\u{200C}خواهم", "né\u{301}e", "\u{A0}\u{AD}",
        "\u{1F3F4}\u{E0067}",
    ])
    func `text without steering characters stays as it is`(text: String) throws {
        #expect(ControlCharacters.escaped(text) == text)
        let json = try JSONEncoder().encode([text])
        #expect(ControlCharacters.escaped(json: json) == Array(json))
    }
}
