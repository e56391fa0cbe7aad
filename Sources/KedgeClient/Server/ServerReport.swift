public import KedgeModel

/// What is known of a server after asking it, and of the way to it (``RemoteAPI/examine()``).
public struct ServerReport: Sendable, Codable, Hashable {
    /// Base URL of the server, without credentials.
    public var address: String
    /// Version of the service; nil from one that does not tell it.
    public var version: String?
    /// Ways to upload that it speaks; nil from one that does not tell them.
    public var protocols: [SpokenProtocol]?
    /// What it takes; nil from one that does not tell it.
    public var limits: SessionLimits?
    /// Why it can do no work now; nil when it can.
    public var trouble: String?
    /// The shortest of several requests and their answers, over one connection, in milliseconds.
    public var latencyMilliseconds: Double
    /// The server's clock minus this machine's, in seconds and accurate to one; nil when it tells no time.
    public var clockDifferenceSeconds: Double?
    /// What the answer says about programs in between (`Via`).
    public var via: String?
    /// The program that answered (`Server`).
    public var server: String?
    /// The proxy that the environment names for the address.
    public var proxy: EnvironmentProxy?
}

/// A proxy that a variable of the environment names.
public struct EnvironmentProxy: Sendable, Codable, Hashable {
    /// Name of the variable, for example `https_proxy`.
    public var variable: String
    /// Address of the proxy, without user and password.
    public var address: String
}

extension EnvironmentProxy {
    /// The proxy that libcurl takes for a URL: that of the scheme, then the one for all, unless `no_proxy`
    /// has the host. `HTTP_PROXY` does not count: a web server sets it from a header field of requests.
    ///
    /// - Parameter environment: The variables.
    static func named(
        for url: String, in environment: [String: String]
    ) -> EnvironmentProxy? {
        guard let origin = URLText.origin(of: url) else { return nil }
        let isSecure = origin.hasPrefix("https:")
        let names = (isSecure ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"])
        guard
            let name = (names + ["all_proxy", "ALL_PROXY"])
                .first(where: { environment[$0]?.isEmpty == false }),
            let address = environment[name], !isExempt(origin, in: environment)
        else { return nil }
        return EnvironmentProxy(variable: name, address: URLText.withoutUserInfo(address))
    }

    /// True when `no_proxy` names the host, a domain above it, or everything.
    private static func isExempt(_ origin: String, in environment: [String: String]) -> Bool {
        guard let list = environment["no_proxy"] ?? environment["NO_PROXY"] else { return false }
        let authority = origin.drop { $0 != "/" }.dropFirst(2)
        let host = authority.prefix(upTo: authority.lastIndex(of: ":") ?? authority.endIndex)
        return list.split { $0 == "," || $0 == " " }.contains { entry in
            let domain = entry.lowercased().drop { $0 == "." }
            return entry == "*" || host == domain || host.hasSuffix(".\(domain)")
        }
    }
}
