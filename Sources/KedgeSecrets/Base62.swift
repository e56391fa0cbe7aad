/// Text of letters and digits only, with a fixed number of characters.
package enum Base62 {
    private static let alphabet = Array(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)

    /// Returns the value with leading zeros.
    ///
    /// - Precondition: The value fits into the width. Every value fits into six characters.
    package static func encode(_ value: UInt32, width: Int) -> String {
        var digits = [UInt8](repeating: alphabet[0], count: width)
        var rest = Int(value)
        for place in digits.indices.reversed() {
            digits[place] = alphabet[rest % alphabet.count]
            rest /= alphabet.count
        }
        precondition(rest == 0, "the value does not fit into the width")
        return String(decoding: digits, as: UTF8.self)
    }

    /// Returns random text from the system's generator.
    package static func random(width: Int) -> String {
        let digits: [UInt8] = (0..<width).map { _ in
            alphabet[Int.random(in: 0..<alphabet.count)]
        }
        return String(decoding: digits, as: UTF8.self)
    }

    /// Whether the text has this many letters and digits, and nothing else.
    package static func isWellFormed(_ text: some StringProtocol, width: Int) -> Bool {
        text.utf8.count == width && text.utf8.allSatisfy { alphabet.contains($0) }
    }
}
