/// Scheme and host of a store.
package struct S3Endpoint: Hashable, Sendable {
    let scheme: String
    /// Includes the port, unless it is the scheme's default, as in the `Host` field.
    package let host: String

    /// Parses the start of a URL: `http://host` or `https://host`, with an optional port. A path is
    /// ignored. Nil for anything else, such as a user name and password.
    package init?(_ url: String) {
        guard let separator = url.firstRange(of: "://") else { return nil }
        let scheme = url[..<separator.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https" else { return nil }
        let authority = url[separator.upperBound...].prefix { $0 != "/" }.lowercased()
        guard !authority.isEmpty, authority.utf8.allSatisfy(Self.isAllowed) else { return nil }
        self.scheme = scheme
        let ownPort = scheme == "http" ? ":80" : ":443"
        host = authority.hasSuffix(ownPort) ? String(authority.dropLast(ownPort.count)) : authority
    }

    var hostWithoutPort: String {
        guard let colon = host.lastIndex(of: ":"), !host[colon...].contains("]") else {
            return host
        }
        return String(host[..<colon])
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"),
            UInt8(ascii: "["), UInt8(ascii: "]"):
            true
        default: false
        }
    }
}
