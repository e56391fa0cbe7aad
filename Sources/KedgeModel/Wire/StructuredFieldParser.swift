/// Parses a structured field from its start (RFC 9651 section 4.2).
struct StructuredFieldParser {
    private var rest: Substring.UTF8View
    /// Whether inner lists, dates and display strings are well-formed.
    private let acceptsEveryType: Bool

    init(_ text: String, acceptsEveryType: Bool) {
        rest = Substring(text).utf8
        self.acceptsEveryType = acceptsEveryType
    }

    var isDone: Bool { rest.isEmpty }

    /// Skips spaces, and returns whether nothing else is left.
    mutating func isAtEnd() -> Bool {
        skipSpaces()
        return isDone
    }

    mutating func skipSpaces() { rest = rest.drop { $0 == UInt8(ascii: " ") } }

    /// Skips spaces and tabs, which are allowed around the commas of a dictionary.
    mutating func skipBlanks() {
        rest = rest.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
    }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest.removeFirst()
        return true
    }

    /// Parses an item with its parameters, after any spaces.
    mutating func item() -> StructuredField.Item? {
        skipSpaces()
        guard let item = bareItem(), skipParameters() else { return nil }
        return item
    }

    /// Parses a key of a dictionary or of parameters.
    mutating func key() -> String? {
        guard let first = rest.first, first == UInt8(ascii: "*") || first.isLower else {
            return nil
        }
        return text { $0.isLower || $0.isDigit || "_-.*".utf8.contains($0) }
    }

    /// Parses the value of a dictionary member. A member without a value is true.
    mutating func memberValue() -> StructuredField.Item? {
        guard take("=") else { return skipParameters() ? .boolean(true) : nil }
        let isList = acceptsEveryType && rest.first == UInt8(ascii: "(")
        guard let item = isList ? innerList() : bareItem(), skipParameters() else { return nil }
        return item
    }

    /// Parses items between parentheses. Lists do not nest.
    private mutating func innerList() -> StructuredField.Item? {
        rest.removeFirst()
        skipSpaces()
        while !take(")") {
            guard item() != nil, let next = rest.first, " )".utf8.contains(next) else { return nil }
            skipSpaces()
        }
        return .other
    }

    private mutating func skipParameters() -> Bool {
        while take(";") {
            skipSpaces()
            guard key() != nil else { return false }
            if take("="), bareItem() == nil { return false }
        }
        return true
    }

    private mutating func bareItem() -> StructuredField.Item? {
        guard let first = rest.first else { return nil }
        switch first {
        case UInt8(ascii: "?"): return boolean()
        case UInt8(ascii: "\""): return string()
        case UInt8(ascii: ":"): return bytes()
        case UInt8(ascii: "-"): return number()
        case UInt8(ascii: "@") where acceptsEveryType: return date()
        case UInt8(ascii: "%") where acceptsEveryType: return displayString()
        case _ where first.isDigit: return number()
        case _ where first == UInt8(ascii: "*") || first.isLetter:
            return .token(
                text {
                    $0.isLetter || $0.isDigit || "!#$%&'*+-.^_`|~:/".utf8.contains($0)
                })
        default: return nil
        }
    }

    private mutating func boolean() -> StructuredField.Item? {
        rest.removeFirst()
        if take("1") { return .boolean(true) }
        return take("0") ? .boolean(false) : nil
    }

    /// Parses at most 15 digits, or 12 before the point and 3 after it, so nothing can overflow.
    private mutating func number() -> StructuredField.Item? {
        let isNegative = take("-")
        let whole = text { $0.isDigit }
        guard !whole.isEmpty else { return nil }
        guard take(".") else {
            guard whole.utf8.count <= 15, let value = WireInteger.parse(whole) else { return nil }
            return .integer(isNegative ? -value : value)
        }
        let fraction = text { $0.isDigit }
        guard whole.utf8.count <= 12, (1...3).contains(fraction.utf8.count) else { return nil }
        return .decimal("\(isNegative ? "-" : "")\(whole).\(fraction)")
    }

    private mutating func string() -> StructuredField.Item? {
        rest.removeFirst()
        var characters: [UInt8] = []
        while var character = rest.popFirst() {
            switch character {
            case UInt8(ascii: "\""): return .string(String(decoding: characters, as: UTF8.self))
            case UInt8(ascii: "\\"):
                guard let escaped = rest.popFirst(), "\"\\".utf8.contains(escaped) else {
                    return nil
                }
                character = escaped
            case 0x20...0x7E: break
            default: return nil
            }
            characters.append(character)
        }
        return nil
    }

    /// Parses seconds since 1970.
    private mutating func date() -> StructuredField.Item? {
        rest.removeFirst()
        guard case .integer = number() else { return nil }
        return .other
    }

    /// Parses text whose bytes beyond ASCII are escaped.
    private mutating func displayString() -> StructuredField.Item? {
        rest.removeFirst()
        guard take("\"") else { return nil }
        var characters: [UInt8] = []
        while var character = rest.popFirst() {
            switch character {
            case UInt8(ascii: "\""):
                return String(validating: characters, as: UTF8.self) == nil ? nil : .other
            case UInt8(ascii: "%"):
                guard let escaped = escapedByte() else { return nil }
                character = escaped
            case 0x20...0x7E: break
            default: return nil
            }
            characters.append(character)
        }
        return nil
    }

    /// Parses two hexadecimal digits in lower case.
    private mutating func escapedByte() -> UInt8? {
        let digits = rest.prefix(2)
        rest = rest[digits.endIndex...]
        guard digits.allSatisfy({ $0.isDigit || $0.isLower }) else { return nil }
        return Hex.decode(String(decoding: digits, as: UTF8.self))?.first
    }

    private mutating func bytes() -> StructuredField.Item? {
        rest.removeFirst()
        let encoded = text { $0 != UInt8(ascii: ":") }
        guard take(":"), let bytes = Base64.decode(encoded) else { return nil }
        return .bytes(bytes)
    }

    private mutating func text(where belongs: (UInt8) -> Bool) -> String {
        let taken = rest.prefix(while: belongs)
        rest = rest[taken.endIndex...]
        return String(decoding: taken, as: UTF8.self)
    }
}

/// The characters of keys, tokens and numbers.
extension UInt8 {
    fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
    fileprivate var isLower: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self) }
    fileprivate var isLetter: Bool {
        isLower || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self)
    }
}
