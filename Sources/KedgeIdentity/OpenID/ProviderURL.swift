internal import Foundation

/// The address of an OpenID provider, or of one of its documents: https, or http on loopback.
package struct ProviderURL: Hashable, Sendable {
    /// The address as it was given. An issuer must be equal to it byte for byte.
    package let text: String
    /// Name or address in lower case, an IPv6 address in brackets.
    package let host: String
    /// Whether the address uses TLS.
    package let isEncrypted: Bool
    package let hasQuery: Bool

    /// Returns nil for any other address, also for one with a user or a fragment.
    package init?(_ text: String) {
        let isPrintable = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        guard isPrintable, let parts = URLComponents(string: text),
            parts.user == nil, parts.password == nil, parts.fragment == nil,
            let host = parts.encodedHost?.lowercased(), !host.isEmpty
        else { return nil }
        switch parts.scheme?.lowercased() {
        case "https": isEncrypted = true
        case "http" where Self.isLoopback(host): isEncrypted = false
        default: return nil
        }
        self.text = text
        self.host = host
        hasQuery = parts.query != nil
    }

    /// Names other than `localhost` could resolve to another machine.
    private static func isLoopback(_ host: String) -> Bool {
        ["localhost", "127.0.0.1", "[::1]"].contains(host)
    }
}
