internal import KedgeModel

/// Text from a disk, a server or a caller, made fit for a terminal and for a log.
///
/// A terminal obeys control characters, and marks of writing direction make a name look like
/// another; both become `_`. User names, passwords and queries of URLs may be secrets: they become
/// `***`.
///
/// - Parameter keepsLines: True for text of several lines that is our own.
func printable(_ text: String, keepsLines: Bool = false) -> String {
    var scalars = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
        let isKept = keepsLines && (scalar == "\n" || scalar == "\t")
        scalars.append(!isKept && SteeringText.steers(scalar) ? "_" : scalar)
    }
    // After that: a control character that a terminal shows as nothing must not end a URL either.
    return URLSecrets.hidden(in: String(scalars))
}

/// The parts of URLs that may be secrets.
///
/// Read scalar by scalar: an `@` and a mark that joins it are one `Character`, but an `@` in a URL.
enum URLSecrets {
    /// The text with user names, passwords, queries and fragments of its URLs replaced by `***`.
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

    /// - Parameter url: What follows `://`.
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
