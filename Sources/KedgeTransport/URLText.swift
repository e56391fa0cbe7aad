internal import Foundation

package enum URLText {
    package static func escapeQuery(_ value: String) -> String {
        var allowed = CharacterSet.alphanumerics
        allowed.insert(charactersIn: "-._~")
        return value.addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
    }

    /// Returns scheme, host and port, with default ports made explicit; nil unless http or https,
    /// and for a URL with spaces or control characters, which no request can name.
    package static func origin(of url: String) -> String? {
        guard url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }),
            let parts = URLComponents(string: url), let scheme = parts.scheme?.lowercased(),
            let host = parts.encodedHost?.lowercased(), !host.isEmpty,
            scheme == "http" || scheme == "https", (1...65_535).contains(parts.port ?? 80)
        else { return nil }
        return "\(scheme)://\(host):\(parts.port ?? (scheme == "https" ? 443 : 80))"
    }

    /// Returns host and port, with default ports made explicit; nil without an ``origin(of:)``.
    package static func place(of url: String) -> (host: String, port: Int)? {
        guard let origin = origin(of: url), let colon = origin.lastIndex(of: ":"),
            let port = Int(origin[origin.index(after: colon)...]),
            let start = origin.firstRange(of: "://")?.upperBound
        else { return nil }
        return (String(origin[start..<colon]), port)
    }

    /// Returns the target of a redirect, resolved against the requested URL.
    package static func resolve(_ location: String, against base: String) -> String? {
        guard let baseURL = URL(string: base),
            let target = URL(string: location, relativeTo: baseURL)?.absoluteURL.absoluteString,
            origin(of: target) != nil
        else { return nil }
        return target
    }

    /// Returns the base URL without trailing slashes; nil unless it is http or https with a host.
    package static func normalizedBase(_ url: String) -> String? {
        guard origin(of: url) != nil else { return nil }
        var text = url
        while text.hasSuffix("/") { text.removeLast() }
        return text
    }

    /// Returns the URL without user, password, query and fragment, for logs; empty if invalid.
    package static func redacted(_ url: String) -> String {
        guard var parts = URLComponents(string: url) else { return "" }
        parts.user = nil
        parts.password = nil
        parts.query = nil
        parts.fragment = nil
        return parts.string ?? ""
    }

    /// Returns the URL without user, password, query and fragment, and otherwise as written, for
    /// the record of a download that has ended.
    ///
    /// Reads scalars: an `@` with a combining mark is one `Character`, but an `@` in a URL.
    package static func withoutSecrets(_ url: String) -> String {
        let plain = url.unicodeScalars.prefix { $0 != "?" && $0 != "#" }
        guard let start = plain.firstRange(of: "://".unicodeScalars)?.upperBound else {
            return String(plain)
        }
        let authority = plain[start...].prefix { $0 != "/" }
        guard let at = authority.lastIndex(of: "@") else { return String(plain) }
        return String(plain[..<start]) + String(plain[plain.index(after: at)...])
    }

    package static func hasUserInfo(_ url: String) -> Bool { userInfoRange(of: url) != nil }

    /// Whether the address uses TLS.
    package static func isEncrypted(_ url: String) -> Bool { url.lowercased().hasPrefix("https:") }

    /// Returns the URL without user and password, and otherwise as written.
    package static func withoutUserInfo(_ url: String) -> String {
        var text = url
        if let range = userInfoRange(of: url) { text.removeSubrange(range) }
        return text
    }

    /// Returns the URL with the user and password of another URL, or without any if that has none.
    package static func url(_ url: String, withUserInfoOf other: String) -> String {
        var text = withoutUserInfo(url)
        if let range = userInfoRange(of: other), let start = text.range(of: "://")?.upperBound {
            text.insert(contentsOf: other[range], at: start)
        }
        return text
    }

    /// Returns the range of user, password and the `@` after them.
    private static func userInfoRange(of url: String) -> Range<String.Index>? {
        guard let start = url.range(of: "://")?.upperBound else { return nil }
        let authority = url[start...].prefix { !"/?#".contains($0) }
        return authority.lastIndex(of: "@").map { start..<url.index(after: $0) }
    }

    /// Returns the last component of the path, decoded; nil when there is none.
    package static func lastPathComponent(of url: String) -> String? {
        guard let path = URLComponents(string: url)?.path else { return nil }
        return path.split(separator: "/").last.map(String.init)
    }
}
