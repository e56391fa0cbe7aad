internal import HTTPTypes
internal import Hummingbird

/// Where clients find the service, for the addresses that they are told. Some clients of tus cannot follow a
/// path alone.
package struct PublicAddress: Hashable, Sendable {
    /// What each request tells, and nothing more.
    package static let ofRequests = PublicAddress(base: nil)

    private let base: String?

    private init(base: String?) { self.base = base }

    /// Reads an address such as `https://files.example/kedge`; empty text gives ``ofRequests``. Nil for any
    /// other text, also for an address with a user, a query or a fragment.
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

    /// The path as a whole URL, where that is known: from the settings; from the proxy in front; or because
    /// the name of a loopback host comes from this machine, and nobody says to stand between. Otherwise the
    /// path: a wrong scheme would lead nowhere, and a path leads wherever the request went.
    ///
    /// What the client makes up here comes back to itself alone.
    func url(_ path: String, asked request: Request) -> String {
        if let base { return base + path }
        guard let host = request.head.authority, let scheme = Self.scheme(of: request, host) else {
            return path
        }
        return "\(scheme)://\(host)\(path)"
    }

    private static func scheme(of request: Request, _ host: String) -> String? {
        if let forwarded = request.headers[.xForwardedProto]?.lowercased() {
            return ["http", "https"].contains(forwarded) ? forwarded : nil
        }
        let isNear = Authority(host).map { Loopback.contains($0.host) } ?? false
        // A proxy that does not tell the scheme may have had another one, and another host, than it
        // uses here.
        return isNear && !request.headers.showProxy ? "http" : nil
    }
}
