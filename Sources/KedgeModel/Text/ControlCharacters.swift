/// Characters that control their display: a terminal obeys control characters, and direction marks
/// make one text look like another. Output for terminals and logs escapes them.
package enum ControlCharacters {
    /// Returns true for C0 and C1 controls, DEL, line and paragraph separators, direction marks and
    /// the byte order mark. Returns false for joiners, which are part of words.
    package static func steers(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0...0x1F, 0x7F...0x9F: true
        case 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF: true
        default: false
        }
    }

    /// Returns the text with `\u{…}` in place of each such character.
    package static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: steers) else { return text }
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            if steers(scalar) {
                result += "\\u{\(String(scalar.value, radix: 16))}".unicodeScalars
            } else {
                result.append(scalar)
            }
        }
        return String(result)
    }

    /// Returns one-line JSON with `\uXXXX` in place of each such character. They occur only inside
    /// strings, where both forms mean the same (RFC 8259 section 7).
    package static func escaped(json: some Sequence<UInt8>) -> [UInt8] {
        let bytes = Array(json)
        guard bytes.contains(where: { $0 >= 0x7F }) else { return bytes }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            append(scalar, to: &result)
        }
        return result
    }

    /// Appends a character in the form it has in a JSON string, except for quotes and backslashes.
    static func append(_ scalar: Unicode.Scalar, to json: inout [UInt8]) {
        guard steers(scalar) else {
            json.append(contentsOf: String(scalar).utf8)
            return
        }
        let value = UInt16(truncatingIfNeeded: scalar.value)
        json.append(contentsOf: "\\u".utf8)
        json.append(contentsOf: Hex.encode([UInt8(value >> 8), UInt8(value & 0xFF)]).utf8)
    }
}
