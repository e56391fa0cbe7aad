/// Text forms of binary values, written here because this target does not import Foundation.
public enum Hex {
    private static let digits = Array("0123456789abcdef".utf8)

    /// Returns lowercase hexadecimal text of the bytes.
    public static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes hexadecimal text in either case; nil when a character or the length is wrong.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        var high: UInt8?
        for character in text.utf8 {
            guard let nibble = value(of: character) else { return nil }
            if let first = high {
                bytes.append(first << 4 | nibble)
                high = nil
            } else {
                high = nibble
            }
        }
        return high == nil ? bytes : nil
    }

    private static func value(of character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

/// The standard base64 alphabet with padding (RFC 4648 section 4), as structured fields use it.
public enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// Returns padded base64 text of the bytes.
    public static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        var position = 0
        while position < bytes.count {
            let group = Array(bytes[position..<min(position + 3, bytes.count)])
            let first = UInt32(group[0]) << 16
            let second = group.count > 1 ? UInt32(group[1]) << 8 : 0
            let third = group.count > 2 ? UInt32(group[2]) : 0
            let bits = first | second | third
            for place in 0..<4 {
                let shift = UInt32(18 - 6 * place)
                text.append(
                    place <= group.count
                        ? alphabet[Int(bits >> shift & 63)] : UInt8(ascii: "="))
            }
            position += 3
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes padded base64 text; nil for any other text.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let characters = Array(text.utf8)
        guard characters.count.isMultiple(of: 4) else { return nil }
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: characters.count, by: 4) {
            let group = characters[start..<start + 4]
            let padding = group.reversed().prefix { $0 == UInt8(ascii: "=") }.count
            guard padding <= 2, padding == 0 || start + 4 == characters.count else { return nil }
            var bits: UInt32 = 0
            for character in group.dropLast(padding) {
                guard let value = alphabet.firstIndex(of: character) else { return nil }
                bits = bits << 6 | UInt32(value)
            }
            bits <<= UInt32(6 * padding)
            // Bits under the padding must be zero, so that each value has one text.
            guard bits & (padding == 0 ? 0 : padding == 1 ? 0xFF : 0xFFFF) == 0 else { return nil }
            let decoded = [UInt8(bits >> 16 & 255), UInt8(bits >> 8 & 255), UInt8(bits & 255)]
            bytes.append(contentsOf: decoded.dropLast(padding))
        }
        return bytes
    }
}
