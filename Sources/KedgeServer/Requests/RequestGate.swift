internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// The one gate before any route: who asks, and whether such a request is taken at all.
///
/// Today everybody who reaches the loopback address is the same anonymous owner. A web browser on this
/// machine reaches it, too, on behalf of any page it shows. So a page of another origin is refused, and
/// so is a name that is not this machine's: a page can let its own name point here (DNS rebinding).
struct RequestGate: Sendable {
    /// Names besides loopback ones that may stand in `Host`; `*` allows all.
    let allowedHosts: Set<String>
    /// Pages that are answered besides those of this server.
    var cors = CORSPolicy.sameOrigin
    /// Peers that say who the client is.
    var proxies = TrustedProxies.none

    /// - Throws: `BAD_REQUEST`, `UNSUPPORTED_TRANSFER_CODING`, `EXPECTATION_FAILED`.
    func principal(of request: Request) throws -> Principal {
        try Self.requireKnownCoding(request)
        try Self.requireKnownExpectation(request)
        let host = try namedHost(of: request)
        if isOfAllowedPage(request) { return Principal.anonymous }
        if let site = request.headers[.secFetchSite], site != "same-origin", site != "none" {
            throw EngineError(.badRequest, "Pages of other sites are not answered.")
        }
        if let origin = request.headers[.origin], !isOwn(origin, at: host) {
            throw EngineError(.badRequest, "Pages of other origins are not answered.")
        }
        return Principal.anonymous
    }

    /// True when a page that the settings name sends the request, or leads its reader here.
    private func isOfAllowedPage(_ request: Request) -> Bool {
        if let origin = request.headers[.origin] { return cors.allows(origin) }
        // Browsers do not tell the origin of a page whose link is followed, or whose image is loaded. Nothing
        // but GET and HEAD is asked for in that way without it, and no page can make up its address.
        guard [.get, .head].contains(request.method) else { return false }
        if let address = request.headers[.referer] { return cors.allows(pageAt: address) }
        return cors.isOpen && request.headers[.secFetchMode] == "navigate"
    }

    /// Where the body ends is known for one coding alone (RFC 9112 section 6.1). A field that names none is
    /// malformed: a front end may read a body from it that this server does not.
    private static func requireKnownCoding(_ request: Request) throws {
        guard let coding = request.headers[.transferEncoding] else { return }
        let names = coding.split(separator: ",", omittingEmptySubsequences: false)
        guard names.allSatisfy({ $0.contains { $0 != " " && $0 != "\t" } }) else {
            throw EngineError(.badRequest, "Transfer-Encoding names a coding.")
        }
        guard coding.lowercased() == "chunked" else {
            throw EngineError(.unsupportedTransferCoding)
        }
    }

    /// There is one expectation (RFC 9110 section 10.1.1), and no other can be met.
    private static func requireKnownExpectation(_ request: Request) throws {
        guard let text = request.headers[.expect], !text.isEmpty else { return }
        guard ContinueAnswer.isExpected(by: text) else { throw EngineError(.expectationFailed) }
    }

    /// The first `Host` is the request's authority; any other is left among the fields.
    private func namedHost(of request: Request) throws -> Authority {
        guard request.headers[.host] == nil, let text = request.head.authority,
            let host = Authority(text)
        else {
            throw EngineError(.badRequest, "A request names one host.")
        }
        guard isConfigured(host) || Loopback.contains(host.host) else {
            throw EngineError(.badRequest, "This server does not answer to the name in Host.")
        }
        return host
    }

    private func isConfigured(_ host: Authority) -> Bool {
        allowedHosts.contains("*") || allowedHosts.contains(host.host)
    }

    /// This server speaks no TLS: a page that came by it came from a proxy under a name in the
    /// settings, or from somebody else.
    private func isOwn(_ text: String, at host: Authority) -> Bool {
        guard let origin = WebOrigin(text), origin.isOrigin(of: host) else { return false }
        return !origin.isSecure || isConfigured(host)
    }
}

/// Names and addresses that only this machine has.
package enum Loopback {
    /// True for `localhost`, `::1` and four numbers that begin with 127.
    package static func contains(_ host: String) -> Bool {
        if host == "localhost" || host == "::1" { return true }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false)
            .map { WireInteger.parse($0) }
        return numbers.count == 4 && numbers[0] == 127
            && numbers.allSatisfy { $0.map { $0 < 256 } ?? false }
    }
}
