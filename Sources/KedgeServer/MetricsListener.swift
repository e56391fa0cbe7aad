internal import Foundation
internal import Hummingbird
internal import HummingbirdCore
internal import KedgeMetrics
internal import Logging
internal import NIOCore
internal import ServiceLifecycle

/// A listener of its own for `GET /metrics`, without credentials and on loopback only, so that the
/// scraper of this machine needs no token.
struct MetricsListener: Sendable {
    /// More than a few scrapers are a mistake, and descriptors are for uploads.
    private static let maxConnectionCount = 16

    let address: ListenAddress
    let metrics: Metrics
    let logger: Logger

    /// Serves until a graceful shutdown.
    ///
    /// - Throws: ``AddressInUse``.
    func run() async throws {
        let routes = MetricsRoutes(metrics: metrics)
        let router = Router()
        // A page that lets its name resolve to this machine must not read them (DNS rebinding).
        let gate = RequestGate(allowedHosts: [])
        router.get("/metrics") { request, _ in
            do {
                try gate.admit(request)
            } catch {
                throw HTTPError(.badRequest)
            }
            return try await routes.answer(request)
        }
        let application = Application(
            router: router,
            server: .http1(configuration: .init(idleTimeout: .seconds(60))),
            configuration: ApplicationConfiguration(
                address: .hostname(address.host, port: address.port), serverName: "kedge",
                availableConnectionsDelegate: MaximumAvailableConnections(
                    Self.maxConnectionCount)),
            logger: logger)
        do {
            try await application.run()
        } catch let error as IOError where error.errnoCode == EADDRINUSE {
            throw AddressInUse(
                host: address.host, port: address.port, setting: "metrics.listen")
        }
    }
}
