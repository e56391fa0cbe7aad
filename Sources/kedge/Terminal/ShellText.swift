internal import KedgeModel

/// Quotes words for a shell.
enum ShellText {
    /// Returns the word, quoted if a shell would read it differently; safe to show on a terminal.
    static func quoted(_ word: String) -> String {
        if word.unicodeScalars.contains(where: ControlCharacters.steers) { return escaped(word) }
        let isPlain = word.allSatisfy {
            $0.isASCII && ($0.isLetter || $0.isNumber || "-_./:=,@%+".contains($0))
        }
        if isPlain, !word.isEmpty { return word }
        // Scalar by scalar: a quote with a combining mark is one `Character`, but a shell still
        // sees the quote.
        var result = "'"
        for scalar in word.unicodeScalars {
            if scalar == "'" {
                result += "'\\''"
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result + "'"
    }

    /// Quotes with `$'…'`, which bash, zsh, ksh and POSIX.1-2024 support.
    private static func escaped(_ word: String) -> String {
        var result = "$'"
        for scalar in word.unicodeScalars {
            switch scalar {
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            case "'", "\\": result += "\\" + String(scalar)
            case _ where ControlCharacters.steers(scalar):
                for byte in String(scalar).utf8 {
                    let digits = String(byte, radix: 8)
                    result += "\\" + String(repeating: "0", count: 3 - digits.count) + digits
                }
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "'"
    }
}
