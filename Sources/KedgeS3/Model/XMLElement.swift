/// One element of an answer, with its content. Attributes, comments and processing instructions are
/// skipped; namespaces stay part of names. Text that is not well-formed is refused.
package struct XMLElement: Sendable {
    private static let maxDepth = 16

    package let name: String
    package private(set) var text = ""
    private(set) var children: [XMLElement] = []

    /// Parses a document and returns its root; nil when it is not well-formed or has a document
    /// type, whose entities could grow without bound.
    package init?(document bytes: [UInt8]) {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        var scanner = Scanner(rest: text.utf8[...])
        guard scanner.skipBetween(), let root = scanner.element(depth: 0), scanner.skipBetween(),
            scanner.rest.isEmpty
        else { return nil }
        self = root
    }

    private init(name: String) { self.name = name }

    /// Returns the text of the first child with this name.
    package func text(of child: String) -> String? { children.first { $0.name == child }?.text }

    /// Returns the children with this name.
    package func all(_ child: String) -> [XMLElement] { children.filter { $0.name == child } }

    /// Returns the first element with this name at any depth, including this one.
    package func first(_ wanted: String) -> XMLElement? {
        if name == wanted { return self }
        for child in children {
            if let found = child.first(wanted) { return found }
        }
        return nil
    }

    /// Escapes the special characters of XML.
    package static func escape(_ text: String) -> String {
        var escaped = ""
        for character in text {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            default: escaped.append(character)
            }
        }
        return escaped
    }

    private struct Scanner {
        var rest: Substring.UTF8View

        /// Skips blanks, comments and processing instructions around the root; false when one does
        /// not end.
        mutating func skipBetween() -> Bool {
            while true {
                rest = rest.drop { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
                if rest.starts(with: "<?".utf8) {
                    guard skip(past: "?>") else { return false }
                } else if rest.starts(with: "<!--".utf8) {
                    guard skip(past: "-->") else { return false }
                } else {
                    return true
                }
            }
        }

        mutating func element(depth: Int) -> XMLElement? {
            guard depth < XMLElement.maxDepth, take("<"), let name = name() else { return nil }
            var element = XMLElement(name: name)
            guard let isEmpty = endTag() else { return nil }
            if isEmpty { return element }
            var text = ""
            while !rest.isEmpty {
                if rest.starts(with: "</".utf8) {
                    guard take("</"), self.name() == name, endTag() == false,
                        let decoded = XMLElement.decode(text)
                    else { return nil }
                    // Text between children is only blanks.
                    element.text = element.children.isEmpty ? decoded : ""
                    return element
                } else if rest.starts(with: "<!--".utf8) {
                    guard skip(past: "-->") else { return nil }
                } else if rest.first == UInt8(ascii: "<") {
                    guard let child = self.element(depth: depth + 1) else { return nil }
                    element.children.append(child)
                } else {
                    text += String(Substring(rest.prefix { $0 != UInt8(ascii: "<") }))
                    rest = rest.drop { $0 != UInt8(ascii: "<") }
                }
            }
            return nil
        }

        /// Reads to the end of a tag. Returns true for an empty element, nil for a malformed tag.
        private mutating func endTag() -> Bool? {
            var quote: UInt8?
            var previous: UInt8?
            while let byte = rest.popFirst() {
                if let open = quote {
                    if byte == open { quote = nil }
                } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                    quote = byte
                } else if byte == UInt8(ascii: ">") {
                    return previous == UInt8(ascii: "/")
                } else if byte == UInt8(ascii: "<") {
                    return nil
                }
                previous = byte
            }
            return nil
        }

        private mutating func name() -> String? {
            let name = rest.prefix { byte in
                switch byte {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: ":"), UInt8(ascii: "_"),
                    UInt8(ascii: "-"), UInt8(ascii: "."):
                    true
                default: false
                }
            }
            rest = rest.dropFirst(name.count)
            return name.isEmpty ? nil : String(Substring(name))
        }

        private mutating func take(_ text: String) -> Bool {
            guard rest.starts(with: text.utf8) else { return false }
            rest = rest.dropFirst(text.utf8.count)
            return true
        }

        private mutating func skip(past end: String) -> Bool {
            while !rest.isEmpty {
                if take(end) { return true }
                rest.removeFirst()
            }
            return false
        }
    }

    /// Replaces XML's five entities and character references; nil for others.
    private static func decode(_ text: String) -> String? {
        guard text.contains("&") else { return text }
        var decoded = ""
        var rest = text[...]
        while let start = rest.firstIndex(of: "&") {
            decoded += rest[..<start]
            guard let end = rest[start...].firstIndex(of: ";"),
                let character = character(of: rest[rest.index(after: start)..<end])
            else { return nil }
            decoded.append(character)
            rest = rest[rest.index(after: end)...]
        }
        return decoded + rest
    }

    private static func character(of entity: Substring) -> Character? {
        switch entity {
        case "amp": return "&"
        case "lt": return "<"
        case "gt": return ">"
        case "quot": return "\""
        case "apos": return "'"
        default:
            guard entity.hasPrefix("#") else { return nil }
            let number = entity.dropFirst()
            let value =
                number.hasPrefix("x")
                ? UInt32(number.dropFirst(), radix: 16) : UInt32(number, radix: 10)
            return value.flatMap { Unicode.Scalar($0) }.map { Character($0) }
        }
    }
}
