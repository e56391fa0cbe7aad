internal import KedgeModel

/// Returns untrusted text in a form that is safe for a terminal and a log.
///
/// Terminals obey control characters, and marks of writing direction can disguise a name; both
/// become `_`. User names, passwords and queries of URLs may be secrets and become `***`.
///
/// - Parameter keepsLines: Whether to keep line breaks and tabs, for this program's own text.
func printable(_ text: String, keepsLines: Bool = false) -> String {
    var scalars = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
        let isKept = keepsLines && (scalar == "\n" || scalar == "\t")
        scalars.append(!isKept && ControlCharacters.steers(scalar) ? "_" : scalar)
    }
    // Last, because a control character that is invisible on a terminal must not end a URL either.
    return URLSecrets.hidden(in: String(scalars))
}

/// Hides the parts of URLs that may be secrets.
///
/// Reads scalar by scalar: an `@` with a combining mark is one `Character`, but an `@` in a URL.
enum URLSecrets {
    /// Replaces user names, passwords, queries and fragments of URLs in the text by `***`.
    static func hidden(in text: String) -> String {
        var result = String.UnicodeScalarView()
        var rest = text.unicodeScalars[...]
        while let scheme = rest.firstRange(of: "://".unicodeScalars) {
            result += rest[..<scheme.upperBound]
            let url = rest[scheme.upperBound...].prefix {
                !$0.properties.isWhitespace && !"\"'<>".unicodeScalars.contains($0)
            }
            result += hidden(inURL: url)
            rest = rest[url.endIndex...]
        }
        return String(result + rest)
    }

    /// - Parameter url: The text after `://`.
    private static func hidden(
        inURL url: Substring.UnicodeScalarView
    ) -> String.UnicodeScalarView {
        let authority = url.prefix { !"/?#".unicodeScalars.contains($0) }
        let plain = url[authority.endIndex...].prefix { !"?#".unicodeScalars.contains($0) }
        var shown = String.UnicodeScalarView()
        if let at = authority.lastIndex(of: "@") {
            shown += "***".unicodeScalars
            shown += authority[at...]
        } else {
            shown += authority
        }
        shown += plain
        if plain.endIndex != url.endIndex { shown += "?***".unicodeScalars }
        return shown
    }
}
