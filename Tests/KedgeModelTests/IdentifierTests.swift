import Foundation
import KedgeModel
import KedgeTesting
import Testing

struct IdentifierTests {
    private static let wellFormed = "0123456789abcdef0123456789abcdef"

    /// The well-formed text with its first characters replaced.
    private static func starting(_ start: String) -> String {
        start + wellFormed.dropFirst(start.utf8.count)
    }

    private static let illFormed: [String] = [
        "", "0", String(wellFormed.dropLast()), wellFormed + "0", wellFormed.uppercased(),
        starting("g"), starting("/"), starting("."), starting("\u{0}"), starting(" "),
        starting("é"), starting("０"), starting("../"), "01234567-89ab-cdef-0123-456789ab",
    ]

    @Test func `32 lower-case hexadecimal digits are an identifier and keep their text`() {
        #expect(SessionID(Self.wellFormed)?.text == Self.wellFormed)
        #expect(FileID(Self.wellFormed)?.description == Self.wellFormed)
        #expect(TransferID("x\(Self.wellFormed)".dropFirst())?.text == Self.wellFormed)
    }

    @Test(arguments: illFormed)
    func `any other text is no identifier`(text: String) {
        #expect(SessionID(text) == nil)
        #expect(!FileID.isWellFormed(text))
    }

    /// R52: identifiers are unguessable, so each of the 128 bits has to vary.
    @Test func `random identifiers are well formed, distinct and use every bit`() {
        let ids = (0..<1000).map { _ in SessionID.random() }
        #expect(ids.allSatisfy { SessionID.isWellFormed($0.text) })
        #expect(Set(ids).count == ids.count)
        let bytes = ids.compactMap { Hex.decode($0.text) }
        let everOne = (0..<16).map { place in bytes.reduce(0) { $0 | $1[place] } }
        let everZero = (0..<16).map { place in bytes.reduce(0) { $0 | ~$1[place] } }
        #expect(everOne == [UInt8](repeating: 255, count: 16))
        #expect(everZero == [UInt8](repeating: 255, count: 16))
    }

    @Test func `generators with the same seed draw the same identifier`() {
        var first = SplitMix64(seed: 7)
        var second = SplitMix64(seed: 7)
        #expect(FileID.random(using: &first) == FileID.random(using: &second))
        #expect(FileID.random(using: &first) != FileID.random(using: &first))
    }

    @Test func `in JSON an identifier is its text, and other text is refused`() throws {
        let id = try #require(SessionID(Self.wellFormed))
        #expect(String(decoding: try JSONEncoder().encode([id]), as: UTF8.self) == "[\"\(id)\"]")
        #expect(try JSONDecoder().decode([SessionID].self, from: Data("[\"\(id)\"]".utf8)) == [id])
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([SessionID].self, from: Data(#"["../x"]"#.utf8))
        }
    }
}
