internal import KedgeServer
internal import ServiceLifecycle
internal import UnixSignals

/// Reads the certificate of the service and opens its audit log again at each SIGHUP, as the hooks
/// of certbot and logrotate send it.
struct HangupReload: Service {
    let service: KedgeService

    func run() async throws {
        let hangups = await UnixSignalsSequence(trapping: .sighup)
        await cancelWhenGracefulShutdown {
            for await _ in hangups {
                await service.reloadCertificate()
                await service.reopenAuditLog()
            }
        }
    }
}
