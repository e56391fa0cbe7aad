/// Reads the string members of a flat JSON object, the form of credentials from services. Skips
/// other members; nil for other JSON.
package enum JSONMembers {
    package static func read(_ text: String) -> [String: String]? {
        var rest = text.unicodeScalars[...]
        var members: [String: String] = [:]
        guard take("{", from: &rest) else { return nil }
        if take("}", from: &rest) { return members }
        repeat {
            guard let name = string(from: &rest), take(":", from: &rest) else { return nil }
            if let value = string(from: &rest) {
                members[name] = value
            } else {
                guard let end = rest.firstIndex(where: { $0 == "," || $0 == "}" }),
                    !rest[..<end].contains(where: { $0 == "{" || $0 == "[" })
                else { return nil }
                rest = rest[end...]
            }
        } while take(",", from: &rest)
        return take("}", from: &rest) ? members : nil
    }

    private static func take(
        _ scalar: Unicode.Scalar, from rest: inout Substring.UnicodeScalarView
    ) -> Bool {
        rest = rest.drop { $0.properties.isWhitespace }
        guard rest.first == scalar else { return false }
        rest.removeFirst()
        return true
    }

    /// Reads a string; nil, without consuming anything, when there is none.
    private static func string(from rest: inout Substring.UnicodeScalarView) -> String? {
        let start = rest
        guard take("\"", from: &rest) else { return nil }
        var text = String.UnicodeScalarView()
        while let scalar = rest.popFirst() {
            if scalar == "\"" { return String(text) }
            guard scalar == "\\" else {
                text.append(scalar)
                continue
            }
            guard let escaped = escape(from: &rest) else { break }
            text.append(escaped)
        }
        rest = start
        return nil
    }

    private static func escape(
        from rest: inout Substring.UnicodeScalarView
    ) -> Unicode.Scalar? {
        switch rest.popFirst() {
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        case "u":
            let digits = String(rest.prefix(4))
            rest = rest.dropFirst(4)
            return UInt32(digits, radix: 16).flatMap { Unicode.Scalar($0) }
        case let other?: return other
        case nil: return nil
        }
    }
}
