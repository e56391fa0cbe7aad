internal import KedgeFiles
internal import KedgeModel
internal import KedgeTLS

/// The combinations of settings with which a service may listen. `kedge serve --check-config`
/// checks them, too.
package enum ListenPolicy {
    /// Returns why the service must not start, in one sentence with the setting that cures it; nil
    /// if it may start.
    typealias Rule = @Sendable (ServiceConfiguration) -> String?

    /// In the order in which an operator should cure them.
    private static let rules: [Rule] = [
        refusesAnonymousClients, refusesPlainHTTP, refusesPlainHTTPWithoutProxy,
        refusesBadCertificate, refusesMissingMasterKeyFile, refusesProxyIdentity,
    ]

    /// Checks all rules.
    ///
    /// - Throws: ``ConfigurationError``
    package static func check(_ configuration: ServiceConfiguration) throws {
        for rule in rules {
            if let refusal = rule(configuration) { throw ConfigurationError(refusal) }
        }
    }

    /// Returns what an operator should know, although the service starts.
    package static func warnings(of configuration: ServiceConfiguration) -> [String] {
        [hostWarning(of: configuration), expiryWarning(of: configuration)].compactMap { $0 }
    }

    /// Returns the warning that ``RequestGate`` refuses the requests of other machines; nil if it
    /// accepts some. It accepts neither the address in `host` nor the host of `publicAddress`.
    static func hostWarning(of configuration: ServiceConfiguration) -> String? {
        guard !configuration.isLoopback, configuration.allowedHosts.isEmpty else { return nil }
        return "\(place(configuration)), and allowedHosts is empty: every request is refused that "
            + "names another host than a loopback one, by name or by address. Set allowedHosts "
            + "to the names and addresses that clients use."
    }

    private static func expiryWarning(of configuration: ServiceConfiguration) -> String? {
        // The check reports a certificate that cannot be read.
        guard let tls = configuration.tls, let certificate = try? ServerCertificate.load(tls),
            certificate.expiresAt < SystemWallClock().now()
        else { return nil }
        return "tls.certificate: \(tls.certificatePath) expired at \(certificate.expiresAt); "
            + "clients refuse it."
    }

    @Sendable private static func refusesProxyIdentity(
        _ configuration: ServiceConfiguration
    ) -> String? {
        guard let settings = configuration.proxyIdentity else { return nil }
        guard configuration.identityMode == .tokens else {
            return "proxy.identityHeader is set and identity.mode is none: every client would be "
                + "the same owner. Set identity.mode to tokens."
        }
        guard !configuration.trustedProxies.isEmpty else {
            return "proxy.identityHeader is set: name the proxy in trustedProxies, also if it is "
                + "on this machine."
        }
        guard settings.secretFile != nil || !configuration.trustedProxies.trustsAll else {
            return "trustedProxies is every address and proxy.identityHeader is set: every client "
                + "could name any owner. Name the proxy, or set proxy.secretFile."
        }
        // A proxy knows its users by cookies or addresses, which browsers send for every page.
        guard !configuration.cors.isOpen else {
            return "cors.allowedOrigins is * and proxy.identityHeader is set: every page could "
                + "upload for the user whom the proxy knows. Name the origins."
        }
        do {
            _ = try settings.readSecret()
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Sendable private static func refusesMissingMasterKeyFile(
        _ configuration: ServiceConfiguration
    ) -> String? {
        guard configuration.identityMode == .tokens else { return nil }
        do {
            _ = try configuration.masterKeyFile()
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Sendable private static func refusesAnonymousClients(
        _ configuration: ServiceConfiguration
    ) -> String? {
        guard !configuration.isLoopback, configuration.identityMode == .anonymous else {
            return nil
        }
        return "\(place(configuration)): without authentication the service listens on loopback "
            + "only (127.0.0.1, ::1, localhost). Set identity.mode to tokens, or put an "
            + "authenticating proxy in front."
    }

    @Sendable private static func refusesPlainHTTP(
        _ configuration: ServiceConfiguration
    ) -> String? {
        guard !configuration.isLoopback, configuration.tls == nil, !configuration.acceptsPlainHTTP
        else { return nil }
        return "\(place(configuration)): tokens would cross the network without TLS. Set "
            + "tls.certificate and tls.key, or identity.plainHTTP to on if a proxy in front ends "
            + "TLS and nothing else can reach this address."
    }

    @Sendable private static func refusesPlainHTTPWithoutProxy(
        _ configuration: ServiceConfiguration
    ) -> String? {
        guard !configuration.isLoopback, configuration.tls == nil,
            configuration.trustedProxies.isEmpty
        else { return nil }
        return "\(place(configuration)), and identity.plainHTTP is on: name the proxy that ends "
            + "TLS in trustedProxies."
    }

    @Sendable private static func refusesBadCertificate(
        _ configuration: ServiceConfiguration
    ) -> String? {
        guard let tls = configuration.tls else { return nil }
        do throws(CertificateFailure) {
            _ = try ServerCertificate.load(tls)
            return nil
        } catch {
            return error.description
        }
    }

    private static func place(_ configuration: ServiceConfiguration) -> String {
        "host is \(configuration.host), which is not a loopback address"
    }
}
