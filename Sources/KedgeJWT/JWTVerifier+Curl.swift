internal import KedgeCurl
package import KedgeIdentity
package import KedgeModel
package import Logging

extension JWTVerifier {
    /// Verifies with keys that libcurl fetches.
    ///
    /// - Parameter now: The clock with which the times of tokens are compared.
    package convenience init(
        _ settings: OpenIDSettings, now: @escaping @Sendable () -> Timestamp, logger: Logger
    ) {
        var configuration = CurlClient.Configuration()
        configuration.connectTimeout = KeyFetch.timeout
        self.init(
            settings, transport: CurlClient(configuration: configuration), now: now,
            logger: logger)
    }
}
