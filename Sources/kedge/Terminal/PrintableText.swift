internal import Foundation

/// Text from a disk, a server or a caller, made fit for a terminal and for a log.
///
/// A terminal obeys control characters, and marks of writing direction make a name look like
/// another; both become `_`. User names, passwords and queries of URLs may be secrets: they become
/// `***`.
///
/// - Parameter keepsLines: True for text of several lines that is our own.
func printable(_ text: String, keepsLines: Bool = false) -> String {
    var scalars = String.UnicodeScalarView()
    for scalar in URLSecrets.hidden(in: text).unicodeScalars {
        let isKept = keepsLines && (scalar == "\n" || scalar == "\t")
        scalars.append(!isKept && isSteering(scalar) ? "_" : scalar)
    }
    return String(scalars)
}

/// True for what a terminal obeys instead of showing.
func isSteering(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0...0x1F, 0x7F...0x9F: true
    case 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF: true
    default: false
    }
}

/// The parts of URLs that may be secrets.
enum URLSecrets {
    /// The text with user names, passwords, queries and fragments of its URLs replaced by `***`.
    static func hidden(in text: String) -> String {
        guard text.contains("://") else { return text }
        var result = ""
        var rest = Substring(text)
        while let scheme = rest.range(of: "://") {
            result += rest[..<scheme.upperBound]
            let url = rest[scheme.upperBound...].prefix {
                !$0.isWhitespace && !"\"'<>".contains($0)
            }
            result += hidden(inURL: url)
            rest = rest[url.endIndex...]
        }
        return result + rest
    }

    /// - Parameter url: What follows `://`.
    private static func hidden(inURL url: Substring) -> String {
        let authority = url.prefix { !"/?#".contains($0) }
        let host = authority.lastIndex(of: "@").map { authority[$0...] }
        let path = url[authority.endIndex...]
        let plain = path.prefix { !"?#".contains($0) }
        return (host.map { "***" + $0 } ?? String(authority)) + plain
            + (plain.endIndex == path.endIndex ? "" : "?***")
    }
}
