internal import KedgeModel

/// `host` or `host:port`, as in `Host` and in origins (RFC 3986 section 3.2).
package struct Authority: Hashable, Sendable {
    /// Name or address in lower case and without brackets.
    package let host: String
    /// Nil when the text names no port.
    package let port: Int?

    /// Returns nil for text of any other form, including one with a user.
    package init?(_ text: String) {
        let text = text.lowercased()
        let end: String.Index
        if text.hasPrefix("[") {
            guard let bracket = text.firstIndex(of: "]") else { return nil }
            host = String(text[text.index(after: text.startIndex)..<bracket])
            guard !host.isEmpty, host.utf8.allSatisfy(Self.isAddressByte) else { return nil }
            end = text.index(after: bracket)
        } else {
            end = text.firstIndex(of: ":") ?? text.endIndex
            host = String(text[..<end])
            guard !host.isEmpty, host.utf8.allSatisfy(Self.isNameByte) else { return nil }
        }
        let rest = text[end...]
        guard rest.isEmpty || rest.hasPrefix(":") else { return nil }
        let digits = rest.dropFirst()
        guard !digits.isEmpty else {
            port = nil
            return
        }
        guard let number = WireInteger.parse(digits), number <= 65_535 else { return nil }
        port = Int(number)
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    private static func isAddressByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: ":"), UInt8(ascii: "."):
            true
        default: false
        }
    }
}

/// The origin of a page (RFC 6454): scheme, host and port.
package struct WebOrigin: Hashable, Sendable {
    package let isSecure: Bool
    package let host: String
    package let port: Int

    /// Returns nil for `null` and for anything that is not an HTTP or HTTPS origin.
    package init?(_ text: String) {
        guard let mark = text.firstRange(of: "://") else { return nil }
        switch text[..<mark.lowerBound].lowercased() {
        case "http": isSecure = false
        case "https": isSecure = true
        default: return nil
        }
        guard let authority = Authority(String(text[mark.upperBound...])) else { return nil }
        host = authority.host
        port = authority.port ?? Self.defaultPort(isSecure: isSecure)
    }

    /// Reads the origin of a page address, as in `Referer`. Returns nil for anything that is not an
    /// HTTP or HTTPS address.
    package init?(ofPageAt address: String) {
        guard let mark = address.firstRange(of: "://") else { return nil }
        let authority = address[mark.upperBound...].prefix { !["/", "?", "#"].contains($0) }
        self.init(String(address[..<mark.upperBound] + authority))
    }

    /// Whether pages of this origin come from this server. `Host` omits the scheme's default port.
    package func isOrigin(of authority: Authority) -> Bool {
        host == authority.host
            && port == authority.port ?? Self.defaultPort(isSecure: isSecure)
    }

    private static func defaultPort(isSecure: Bool) -> Int { isSecure ? 443 : 80 }
}
