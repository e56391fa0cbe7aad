internal import KedgeSecrets

/// The identifier of an API token: 12 letters and digits. It is no secret and may be logged.
package struct TokenID: Hashable, Sendable, CustomStringConvertible {
    /// Number of characters.
    package static let width = 12

    package let text: String

    /// Parses an identifier; nil for any other text.
    package init?(_ text: some StringProtocol) {
        guard Base62.isWellFormed(text, width: Self.width) else { return nil }
        self.text = String(text)
    }

    private init(wellFormed text: String) { self.text = text }

    /// Makes a new identifier.
    package static func random() -> TokenID { TokenID(wellFormed: Base62.random(width: width)) }

    package var description: String { text }
}
