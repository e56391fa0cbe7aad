internal import KedgeModel

/// Words as a shell reads them.
enum ShellText {
    /// The word, quoted when a shell would read it as anything else; safe to show on a terminal.
    static func quoted(_ word: String) -> String {
        if word.unicodeScalars.contains(where: SteeringText.steers) { return escaped(word) }
        let isPlain = word.allSatisfy {
            $0.isASCII && ($0.isLetter || $0.isNumber || "-_./:=,@%+".contains($0))
        }
        if isPlain, !word.isEmpty { return word }
        // Scalar by scalar: a quote and a mark that joins it are one `Character`, but a shell sees
        // the quote.
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

    /// `$'…'`, which bash, zsh and ksh know, as POSIX of 2024 does.
    private static func escaped(_ word: String) -> String {
        var result = "$'"
        for scalar in word.unicodeScalars {
            switch scalar {
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            case "'", "\\": result += "\\" + String(scalar)
            case _ where SteeringText.steers(scalar):
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
