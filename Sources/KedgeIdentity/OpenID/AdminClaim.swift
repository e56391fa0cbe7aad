/// A claim, and the value with which it gives every scope.
package struct AdminClaim: Hashable, Sendable {
    package let name: String
    /// The claim's text, or one element of its list.
    package let value: String

    /// Parses `name=value`; nil for any other text.
    package init?(_ text: String) {
        guard let sign = text.firstIndex(of: "=") else { return nil }
        name = String(text[..<sign])
        value = String(text[text.index(after: sign)...])
        guard !name.isEmpty, !value.isEmpty else { return nil }
    }
}
