internal import HTTPTypes
internal import Hummingbird

/// The public address of the service, for URLs in responses. Some tus clients cannot follow a path
/// alone.
package struct PublicAddress: Hashable, Sendable {
    /// Derives the address from each request.
    package static let ofRequests = PublicAddress(base: nil)

    private let base: String?
    /// Whether the service itself ends TLS.
    var isSecure = false

    private init(base: String?) { self.base = base }

    /// Reads an address such as `https://files.example/kedge`; empty text gives ``ofRequests``.
    /// Returns nil for any other text, including an address with a user, a query or a fragment.
    package init?(text: String) {
        guard !text.isEmpty else {
            self = .ofRequests
            return
        }
        guard let mark = text.firstRange(of: "://") else { return nil }
        let rest = text[mark.upperBound...]
        let authority = rest.prefix { $0 != "/" }
        let origin = String(text[..<mark.upperBound] + authority)
        let parts = rest[authority.endIndex...].split(separator: "/")
        guard WebOrigin(origin) != nil, parts.allSatisfy({ EndpointPath.isPlain($0) }) else {
            return nil
        }
        base = ([origin] + parts.map { String($0) }).joined(separator: "/")
    }

    /// The absolute URL of a path, or the path itself when scheme and host are not known.
    ///
    /// They are known from the settings, from `X-Forwarded-Proto`, or when the request shows no
    /// proxy and either uses TLS or names a loopback host. A wrong scheme would not work, but a
    /// path leads to where the request went.
    ///
    /// A client that forges these fields affects only its own response.
    func url(_ path: String, asked request: Request) -> String {
        if let base { return base + path }
        guard let host = request.head.authority, let scheme = self.scheme(of: request, host) else {
            return path
        }
        return "\(scheme)://\(host)\(path)"
    }

    private func scheme(of request: Request, _ host: String) -> String? {
        if let forwarded = request.headers[.xForwardedProto]?.lowercased() {
            return ["http", "https"].contains(forwarded) ? forwarded : nil
        }
        let isNear = Authority(host).map { Loopback.contains($0.host) } ?? false
        // A client may have reached the proxy by another scheme and host than the proxy uses here.
        guard !request.headers.showProxy else { return nil }
        return isSecure ? "https" : isNear ? "http" : nil
    }
}
