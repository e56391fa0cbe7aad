/// Writes compact JSON from left to right. The caller keeps to the grammar; commas are added
/// automatically.
struct JSONText {
    /// The UTF-8 text so far.
    private(set) var bytes: [UInt8] = []

    mutating func object(_ members: (inout JSONText) -> Void) {
        separate()
        bytes.append(UInt8(ascii: "{"))
        members(&self)
        bytes.append(UInt8(ascii: "}"))
    }

    mutating func array(_ elements: (inout JSONText) -> Void) {
        separate()
        bytes.append(UInt8(ascii: "["))
        elements(&self)
        bytes.append(UInt8(ascii: "]"))
    }

    /// Writes the name of the member whose value follows.
    mutating func name(_ key: some CodingKey) {
        string(key.stringValue)
        bytes.append(UInt8(ascii: ":"))
    }

    /// Writes a member, unless it has no value.
    mutating func member(_ key: some CodingKey, _ value: String?) {
        guard let value else { return }
        name(key)
        string(value)
    }

    /// Writes a member, unless it has no value.
    mutating func member(_ key: some CodingKey, _ value: Int64?) {
        guard let value else { return }
        name(key)
        number(value)
    }

    /// Writes a member, unless it has no value.
    mutating func member(_ key: some CodingKey, _ value: Bool?) {
        guard let value else { return }
        name(key)
        separate()
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
    }

    mutating func number(_ value: Int64) {
        separate()
        if value < 0 { bytes.append(UInt8(ascii: "-")) }
        // Without a `String` for each number, which would take most of the time of a long list.
        var low = bytes.count
        var rest = value.magnitude
        repeat {
            bytes.append(UInt8(ascii: "0") + UInt8(rest % 10))
            rest /= 10
        } while rest > 0
        var high = bytes.count - 1
        while low < high {
            bytes.swapAt(low, high)
            (low, high) = (low + 1, high - 1)
        }
    }

    mutating func string(_ text: String) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        for scalar in text.unicodeScalars {
            if let escape = Self.escape(scalar) {
                bytes.append(contentsOf: escape.utf8)
            } else {
                ControlCharacters.append(scalar, to: &bytes)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Writes a comma where one is needed. Strings end in quotes, so these last bytes are
    /// punctuation.
    private mutating func separate() {
        switch bytes.last {
        case nil, UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: ":"): break
        default: bytes.append(UInt8(ascii: ","))
        }
    }

    /// The short escape of a character that must not appear unescaped (RFC 8259 section 7); nil
    /// when there is none.
    private static func escape(_ scalar: Unicode.Scalar) -> String? {
        switch scalar {
        case "\"": "\\\""
        case "\\": "\\\\"
        case "\u{08}": "\\b"
        case "\t": "\\t"
        case "\n": "\\n"
        case "\u{0C}": "\\f"
        case "\r": "\\r"
        default: nil
        }
    }
}
