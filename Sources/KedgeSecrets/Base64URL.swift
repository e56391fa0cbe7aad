internal import KedgeModel

/// Base64 in the alphabet that is safe in URLs, without padding (RFC 4648 section 5).
package enum Base64URL {
    /// Returns the text of the bytes.
    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for character in Base64.encode(bytes).utf8 {
            switch character {
            case UInt8(ascii: "+"): text.append(UInt8(ascii: "-"))
            case UInt8(ascii: "/"): text.append(UInt8(ascii: "_"))
            case UInt8(ascii: "="): break
            default: text.append(character)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes text; nil for any other text, also with padding, spaces or unused bits that are set.
    /// So each value has one text.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var characters: [UInt8] = []
        for character in text.utf8 {
            switch character {
            case UInt8(ascii: "-"): characters.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): characters.append(UInt8(ascii: "/"))
            case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
            default: characters.append(character)
            }
        }
        while !characters.count.isMultiple(of: 4) { characters.append(UInt8(ascii: "=")) }
        // A last group of one character gets three signs of padding, which are refused.
        return Base64.decode(String(decoding: characters, as: UTF8.self))
    }
}
