internal import Foundation

/// The few things that transfers do to the text of URLs.
enum URLText {
    /// Percent-encodes a value of a query.
    static func escapeQuery(_ value: String) -> String {
        var allowed = CharacterSet.alphanumerics
        allowed.insert(charactersIn: "-._~")
        return value.addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
    }

    /// Scheme, host and port, with default ports made explicit; nil for anything but http and https.
    static func origin(of url: String) -> String? {
        guard let parts = URLComponents(string: url), let scheme = parts.scheme?.lowercased(),
            let host = parts.encodedHost?.lowercased(), !host.isEmpty,
            scheme == "http" || scheme == "https"
        else { return nil }
        return "\(scheme)://\(host):\(parts.port ?? (scheme == "https" ? 443 : 80))"
    }

    /// Host and port, default ports made explicit; nil for what has no ``origin(of:)``.
    static func place(of url: String) -> (host: String, port: Int)? {
        guard let origin = origin(of: url), let colon = origin.lastIndex(of: ":"),
            let port = Int(origin[origin.index(after: colon)...]),
            let start = origin.firstRange(of: "://")?.upperBound
        else { return nil }
        return (String(origin[start..<colon]), port)
    }

    /// The target of a redirect, relative to the URL that was asked.
    static func resolve(_ location: String, against base: String) -> String? {
        guard let baseURL = URL(string: base),
            let target = URL(string: location, relativeTo: baseURL)?.absoluteURL.absoluteString,
            origin(of: target) != nil
        else { return nil }
        return target
    }

    /// The base URL without trailing slashes; nil unless it is http or https with a host.
    static func normalizedBase(_ url: String) -> String? {
        guard origin(of: url) != nil else { return nil }
        var text = url
        while text.hasSuffix("/") { text.removeLast() }
        return text
    }

    /// Without user, password, query and fragment, for logs; empty for what is no URL.
    static func redacted(_ url: String) -> String {
        guard var parts = URLComponents(string: url) else { return "" }
        parts.user = nil
        parts.password = nil
        parts.query = nil
        parts.fragment = nil
        return parts.string ?? ""
    }

    /// The URL without user, password, query and fragment, otherwise as it was written: what a record
    /// keeps of a download that has ended.
    ///
    /// Read scalar by scalar: an `@` and a mark that joins it are one `Character`, but an `@` in a URL.
    static func withoutSecrets(_ url: String) -> String {
        let plain = url.unicodeScalars.prefix { $0 != "?" && $0 != "#" }
        guard let start = plain.firstRange(of: "://".unicodeScalars)?.upperBound else {
            return String(plain)
        }
        let authority = plain[start...].prefix { $0 != "/" }
        guard let at = authority.lastIndex(of: "@") else { return String(plain) }
        return String(plain[..<start]) + String(plain[plain.index(after: at)...])
    }

    /// True when user or password are in the URL.
    static func hasUserInfo(_ url: String) -> Bool { userInfoRange(of: url) != nil }

    /// True for an address that is spoken to over TLS.
    static func isEncrypted(_ url: String) -> Bool { url.lowercased().hasPrefix("https:") }

    /// The URL with nothing changed but that user and password are gone.
    static func withoutUserInfo(_ url: String) -> String {
        var text = url
        if let range = userInfoRange(of: url) { text.removeSubrange(range) }
        return text
    }

    /// The URL with the user and password that another one has; without any when that has none.
    static func url(_ url: String, withUserInfoOf other: String) -> String {
        var text = withoutUserInfo(url)
        if let range = userInfoRange(of: other), let start = text.range(of: "://")?.upperBound {
            text.insert(contentsOf: other[range], at: start)
        }
        return text
    }

    /// User, password and the sign after them, as they are written.
    private static func userInfoRange(of url: String) -> Range<String.Index>? {
        guard let start = url.range(of: "://")?.upperBound else { return nil }
        let authority = url[start...].prefix { !"/?#".contains($0) }
        return authority.lastIndex(of: "@").map { start..<url.index(after: $0) }
    }

    /// The last component of the path, decoded; nil when there is none.
    static func lastPathComponent(of url: String) -> String? {
        guard let path = URLComponents(string: url)?.path else { return nil }
        return path.split(separator: "/").last.map(String.init)
    }
}
