internal import KedgeModel

/// `host` or `host:port`, as `Host` and origins name a server (RFC 3986 section 3.2).
package struct Authority: Hashable, Sendable {
    /// Name or address in lower case and without brackets.
    package let host: String
    /// Nil when the text names none.
    package let port: Int?

    /// Nil for text of any other form, also for one that names a user.
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

/// Where a page comes from (RFC 6454): scheme, host and port together.
package struct WebOrigin: Hashable, Sendable {
    package let isSecure: Bool
    package let host: String
    package let port: Int

    /// Nil for `null` and for anything that is no address of the web.
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

    /// The origin of the page at an address, as `Referer` has it; nil for what is no page of the web.
    package init?(ofPageAt address: String) {
        guard let mark = address.firstRange(of: "://") else { return nil }
        let authority = address[mark.upperBound...].prefix { !["/", "?", "#"].contains($0) }
        self.init(String(address[..<mark.upperBound] + authority))
    }

    /// True for pages that came from this server. `Host` leaves the scheme's own port out.
    package func isOrigin(of authority: Authority) -> Bool {
        host == authority.host
            && port == authority.port ?? Self.defaultPort(isSecure: isSecure)
    }

    private static func defaultPort(isSecure: Bool) -> Int { isSecure ? 443 : 80 }
}
