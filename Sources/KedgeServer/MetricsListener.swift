internal import Foundation
internal import Hummingbird
internal import KedgeMetrics
internal import Logging
internal import NIOCore
internal import ServiceLifecycle

/// A listener of its own for `GET /metrics`, without credentials and on loopback only, so that the
/// scraper of this machine needs no token.
struct MetricsListener: Sendable {
    let address: ListenAddress
    let metrics: Metrics
    let logger: Logger

    /// Serves until a graceful shutdown.
    ///
    /// - Throws: ``AddressInUse``.
    func run() async throws {
        let routes = MetricsRoutes(metrics: metrics)
        let router = Router()
        router.get("/metrics") { request, _ in try await routes.answer(request) }
        let application = Application(
            router: router,
            configuration: ApplicationConfiguration(
                address: .hostname(address.host, port: address.port), serverName: "kedge"),
            logger: logger)
        do {
            try await application.run()
        } catch let error as IOError where error.errnoCode == EADDRINUSE {
            throw AddressInUse(
                host: address.host, port: address.port, setting: "metrics.listen")
        }
    }
}
