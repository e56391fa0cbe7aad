internal import KedgeModel

/// `Content-Disposition` (RFC 6266), written for downloads and read for the name of an uploaded
/// file.
package enum ContentDisposition {
    /// The value for a download that is saved, so that uploaded content is never shown in a page of
    /// this origin.
    package static func attachment(_ fileName: String) -> String {
        value("attachment", fileName)
    }

    /// The value for a download that a browser may show.
    static func inline(_ fileName: String) -> String { value("inline", fileName) }

    /// The plain name is ASCII; the full one is percent-encoded UTF-8 (RFC 8187).
    private static func value(_ type: String, _ fileName: String) -> String {
        let fallback = String(
            fileName.unicodeScalars.map { scalar -> Character in
                let isSafe =
                    (0x20...0x7E).contains(scalar.value) && !["\"", "\\", "%"].contains(scalar)
                return isSafe ? Character(scalar) : "_"
            })
        return "\(type); filename=\"\(fallback)\"; filename*=UTF-8''\(percentEncoded(fileName))"
    }

    /// The file name in a request's header; `filename*` takes precedence over `filename`. Nil when
    /// there is none or when it cannot be decoded.
    ///
    /// Invalid UTF-8 in `filename` has become U+FFFD before this point and counts as undecodable.
    package static func fileName(in value: String) -> String? {
        let parameters = Self.parameters(of: value)
        if let extended = parameters["filename*"] {
            let parts = extended.split(
                separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3, parts[0].lowercased() == "utf-8" else { return nil }
            return percentDecoded(parts[2])
        }
        guard let name = parameters["filename"], !name.unicodeScalars.contains("\u{FFFD}") else {
            return nil
        }
        return name
    }

    private static func parameters(of value: String) -> [String: String] {
        var result: [String: String] = [:]
        var name = ""
        var text = ""
        var isValue = false
        var isQuoted = false
        var isEscaped = false
        func finish() {
            let key = name.filter { $0 != " " && $0 != "\t" }.lowercased()
            if isValue, !key.isEmpty, result[key] == nil { result[key] = text }
            name = ""
            text = ""
            isValue = false
        }
        for character in value {
            if isEscaped {
                text.append(character)
                isEscaped = false
            } else if isQuoted, character == "\\" {
                isEscaped = true
            } else if isValue, character == "\"" {
                isQuoted.toggle()
            } else if character == ";", !isQuoted {
                finish()
            } else if character == "=", !isValue {
                isValue = true
            } else if !isValue {
                name.append(character)
            } else if isQuoted || (character != " " && character != "\t") {
                text.append(character)
            }
        }
        finish()
        return result
    }

    private static func percentEncoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            let scalar = Unicode.Scalar(byte)
            let isPlain =
                byte < 0x80
                && (scalar.properties.isAlphabetic || (48...57).contains(byte)
                    || "!#$&+-.^_`|~".unicodeScalars.contains(scalar))
            if isPlain {
                result.unicodeScalars.append(scalar)
            } else {
                result += "%" + Hex.encode([byte]).uppercased()
            }
        }
        return result
    }

    private static func percentDecoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                // Other characters than ASCII must be encoded (RFC 8187 section 3.2.1).
                guard byte < 0x80 else { return nil }
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2,
                let digits = String(rest.prefix(2)), let decoded = Hex.decode(digits)
            else { return nil }
            bytes.append(contentsOf: decoded)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
