/// The owner of sessions and files. Another owner's id gets the same response as an unknown one.
package struct OwnerID: Hashable, Sendable, CustomStringConvertible {
    /// Maximum length of an owner's name in bytes.
    package static let maxByteCount = 255

    package let text: String

    /// Wraps text that is already checked, such as that of a row.
    package init(_ text: String) { self.text = text }

    /// Checks text of a credential or of a header; nil unless it has 1 to 255 printable ASCII
    /// bytes.
    ///
    /// A space at either end is refused, too. Parsers of header fields drop it, so that one text
    /// would name two owners.
    package init?(checking text: some StringProtocol) {
        let bytes = text.utf8
        let space = UInt8(ascii: " ")
        guard (1...Self.maxByteCount).contains(bytes.count),
            bytes.allSatisfy({ (space...UInt8(ascii: "~")).contains($0) }),
            bytes.first != space, bytes.suffix(1).first != space
        else { return nil }
        self.text = String(text)
    }

    package var description: String { text }

    /// The only owner while the server has no authentication; allowed on loopback only.
    package static let anonymous = OwnerID("anonymous")
}
