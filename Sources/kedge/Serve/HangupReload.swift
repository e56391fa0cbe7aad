internal import KedgeServer
internal import ServiceLifecycle
internal import UnixSignals

/// Reads the certificate of the service again at each SIGHUP, as certbot's hooks send it.
struct HangupReload: Service {
    let service: KedgeService

    func run() async throws {
        let hangups = await UnixSignalsSequence(trapping: .sighup)
        await cancelWhenGracefulShutdown {
            for await _ in hangups { await service.reloadCertificate() }
        }
    }
}
