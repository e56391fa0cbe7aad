internal import HTTPTypes
package import KedgeTransport

/// The token, user and password for one server, and the only rule about where they may go.
package struct ServerCredentials: Sendable {
    /// Address of the server that the credentials are for. A user and password in it are sent only
    /// to its origin.
    let home: String
    /// Bearer token, sent only to the origin of ``home``; never logged or stored.
    let token: String?

    package init(home: String, token: String?) {
        self.home = home
        self.token = token
    }

    /// Returns the credentials with another token.
    func with(token: String) -> ServerCredentials { ServerCredentials(home: home, token: token) }

    /// Whether requests to the address may carry the credentials: it has the scheme, host and port
    /// of ``home``.
    func areFor(_ url: String) -> Bool {
        guard let origin = URLText.origin(of: home) else { return false }
        return URLText.origin(of: url) == origin
    }

    /// Returns the request with the credentials, if it goes to the origin of ``home``: the same
    /// scheme, host and port. A user and password that the request's address has are kept.
    package func attached(to request: TransportRequest) -> TransportRequest {
        guard areFor(request.url) else { return request }
        var request = request
        // A link in the address is the credential of the request. A second one could be refused.
        if let token, !ServiceLink.isIn(request.url) {
            request.headerFields[.authorization] = "Bearer \(token)"
        }
        if !URLText.hasUserInfo(request.url) {
            request.url = URLText.url(request.url, withUserInfoOf: home)
        }
        return request
    }

    /// Whether the request carries a token or link, or a user and password.
    static func areIn(_ request: TransportRequest) -> Bool {
        request.headerFields[.authorization] != nil || URLText.hasUserInfo(request.url)
            || ServiceLink.isIn(request.url)
    }

    /// Whether a link is the credential of the request.
    static func areLink(in request: TransportRequest) -> Bool {
        let scheme = "Bearer "
        guard let field = request.headerFields[.authorization], field.hasPrefix(scheme) else {
            return ServiceLink.isIn(request.url)
        }
        return ServiceLink.isText(field.dropFirst(scheme.count))
    }
}
