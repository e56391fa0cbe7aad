internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// Refuses unsafe requests, before any route and any credential.
///
/// Without identities, every client that reaches the loopback address is the same anonymous owner.
/// A web browser on this machine reaches it too, on behalf of any page that it shows. The gate
/// therefore refuses pages of other origins. It also refuses host names that are not this
/// machine's, because a page can let its own name resolve to this machine (DNS rebinding).
package struct RequestGate: Sendable {
    /// Names that are longer are cut in the log: any client can send them.
    private static let maxLoggedLength = 256

    /// Host names that are accepted in `Host` besides loopback ones; `*` accepts all.
    let allowedHosts: Set<String>
    /// Origins besides the server's own whose pages are answered.
    var cors = CORSPolicy.sameOrigin
    /// Proxies whose `X-Forwarded-For` is trusted.
    var proxies = TrustedProxies.none
    /// Whether the server itself ends TLS.
    var isSecure = false
    /// Whether requests with a link have no other rights than those of the link.
    var acceptsLinks = false

    package init(
        allowedHosts: Set<String>,
        cors: CORSPolicy = CORSPolicy.sameOrigin,
        proxies: TrustedProxies = TrustedProxies.none,
        isSecure: Bool = false, acceptsLinks: Bool = false
    ) {
        self.isSecure = isSecure
        self.allowedHosts = allowedHosts
        self.cors = cors
        self.proxies = proxies
        self.acceptsLinks = acceptsLinks
    }

    /// - Throws: `BAD_REQUEST`, `UNSUPPORTED_TRANSFER_CODING`, `EXPECTATION_FAILED`.
    func admit(_ request: Request) throws {
        if let refusal = try pageRefusal(of: request) { throw refusal }
    }

    /// Checks the request, and returns the refusal of the page from which it comes if only the
    /// request's link may permit the page. Nil where the page is permitted.
    ///
    /// - Throws: As ``admit(_:)``.
    func admitPermittingLinks(_ request: Request) throws -> EngineError? {
        let refusal = try pageRefusal(of: request)
        if let refusal, !mayBePermitted(request) { throw refusal }
        return refusal
    }

    /// Returns the response to a CORS preflight request; nil for any other request.
    ///
    /// The address of a preflight request is that of the request to come, with its link. Whether
    /// the link permits the page is checked then.
    func preflight(_ request: Request, methods: () -> [String]) -> Response? {
        cors.preflight(request, permitsAll: mayBePermitted(request), methods: methods)
    }

    /// Whether a link may permit the page of the request.
    private func mayBePermitted(_ request: Request) -> Bool {
        acceptsLinks && LinkText.isInQuery(of: request)
    }

    private func pageRefusal(of request: Request) throws -> EngineError? {
        try Self.requireKnownCoding(request)
        try Self.requireKnownExpectation(request)
        let host = try namedHost(of: request)
        if isOfAllowedPage(request) { return nil }
        if let site = request.headers[.secFetchSite], site != "same-origin", site != "none" {
            return EngineError(.badRequest, "Requests by pages of other sites are refused.")
        }
        if let origin = request.headers[.origin], !isOwn(origin, at: host) {
            return EngineError(.badRequest, "Requests by pages of other origins are refused.")
        }
        return nil
    }

    /// Whether the request comes from an allowed page, or from a link in one.
    private func isOfAllowedPage(_ request: Request) -> Bool {
        if let origin = request.headers[.origin] { return cors.allows(origin) }
        // Browsers do not send the origin of a page when a link is followed or an image is loaded.
        // They send only GET and HEAD without it, and no page can forge its `Referer`.
        guard [.get, .head].contains(request.method) else { return false }
        if let address = request.headers[.referer] { return cors.allows(pageAt: address) }
        return cors.isOpen && request.headers[.secFetchMode] == "navigate"
    }

    /// Refuses every transfer coding but `chunked`, the only one with a known end (RFC 9112 section
    /// 6.1). A field without a coding is malformed: a front end may see a body where this server
    /// sees none.
    private static func requireKnownCoding(_ request: Request) throws {
        guard let coding = request.headers[.transferEncoding] else { return }
        let names = coding.split(separator: ",", omittingEmptySubsequences: false)
        guard names.allSatisfy({ $0.contains { $0 != " " && $0 != "\t" } }) else {
            throw EngineError(.badRequest, "Transfer-Encoding has an empty coding.")
        }
        guard coding.lowercased() == "chunked" else {
            throw EngineError(.unsupportedTransferCoding)
        }
    }

    /// Refuses every expectation but `100-continue`, the only one there is (RFC 9110 section
    /// 10.1.1).
    private static func requireKnownExpectation(_ request: Request) throws {
        guard let text = request.headers[.expect], !text.isEmpty else { return }
        guard ContinueAnswer.isExpected(by: text) else { throw EngineError(.expectationFailed) }
    }

    /// The host that the request names. The first `Host` is the request's authority; a repeated one
    /// is among the fields.
    private func namedHost(of request: Request) throws -> Authority {
        guard request.headers[.host] == nil, let text = request.head.authority,
            let host = Authority(text)
        else {
            throw EngineError(.badRequest, "A request must have exactly one valid Host.")
        }
        guard isConfigured(host) || Loopback.contains(host.host) else {
            throw EngineError(
                .badRequest, "This server does not serve the name in Host.",
                cause: "allowedHosts does not name \(host.host.prefix(Self.maxLoggedLength))")
        }
        return host
    }

    private func isConfigured(_ host: Authority) -> Bool {
        allowedHosts.contains("*") || allowedHosts.contains(host.host)
    }

    /// Whether the page comes from this server.
    ///
    /// A server with TLS has only HTTPS pages. Without TLS, an HTTPS page comes either through a
    /// proxy with a configured name or from another server.
    private func isOwn(_ text: String, at host: Authority) -> Bool {
        guard let origin = WebOrigin(text), origin.isOrigin(of: host) else { return false }
        return isSecure ? origin.isSecure : !origin.isSecure || isConfigured(host)
    }
}

/// Host names and addresses of the local machine.
package enum Loopback {
    /// Whether the host is `localhost`, `::1` or an IPv4 address that begins with 127.
    package static func contains(_ host: String) -> Bool {
        if host == "localhost" || host == "::1" { return true }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false)
            .map { WireInteger.parse($0) }
        return numbers.count == 4 && numbers[0] == 127
            && numbers.allSatisfy { $0.map { $0 < 256 } ?? false }
    }
}
