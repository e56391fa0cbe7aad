/// A proxy named by an environment variable, or by the settings.
public struct EnvironmentProxy: Sendable, Codable, Hashable {
    /// Name of the variable, for example `https_proxy`; `settings` for a proxy of the settings.
    public var variable: String
    /// Address of the proxy, without user and password.
    public var address: String
}

extension EnvironmentProxy {
    /// Returns the proxy that libcurl uses for a URL: that of the settings, unless `no_proxy` names
    /// the host, or else that of the environment.
    ///
    /// - Parameter configured: URL of the settings' proxy; empty for none, nil for that of the
    ///   environment.
    package static func used(
        for url: String, configured: String?, in environment: [String: String]
    ) -> EnvironmentProxy? {
        guard let configured else { return named(for: url, in: environment) }
        guard !configured.isEmpty, let origin = URLText.origin(of: url),
            !isExempt(origin, in: environment)
        else { return nil }
        return EnvironmentProxy(
            variable: "settings", address: URLText.withoutUserInfo(configured))
    }

    /// Returns the proxy that libcurl takes from the environment for a URL: that of the scheme,
    /// then the one for all, unless `no_proxy` names the host. `HTTP_PROXY` does not count: a web
    /// server sets it from a header field of requests.
    package static func named(
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

    /// Whether `no_proxy` names the host, a domain above it, or everything.
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
