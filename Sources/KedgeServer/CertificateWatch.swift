internal import KedgeFiles
internal import KedgeModel
internal import KedgeTLS
internal import Logging
internal import NIOPosix

/// Exchanges the certificate of a running service, and shows in log and metrics which one is used.
struct CertificateWatch: Sendable {
    let certificates: CertificateReloader
    let metrics: ServiceMetrics
    /// Time between two checks of the files for changes.
    let interval: Duration
    let logger: Logger

    /// Checks the files regularly until the task is cancelled.
    func run() async {
        metrics.observeHandshakes()
        show(certificates.current)
        while !Task.isCancelled {
            do {
                try await Task.sleep(for: interval)
            } catch {
                return
            }
            await load { [certificates] in try certificates.reloadIfChanged() }
        }
    }

    /// Reads the files now.
    func reload() async {
        await load { [certificates] in try certificates.reload() }
    }

    /// Runs on a thread for blocking calls: the files may be on a file system that hangs.
    private func load(_ body: @escaping @Sendable () throws -> ServerCertificate?) async {
        do {
            guard let loaded = try await NIOThreadPool.singleton.runIfActive(body) else { return }
            show(loaded)
        } catch let failure as CertificateFailure {
            logger.error(
                "certificate reload failed; the one before stays in use",
                metadata: ["error": "\(failure)"])
        } catch {
            // The process ends.
            logger.debug("certificate reload cancelled", metadata: ["error": "\(error)"])
        }
    }

    private func show(_ certificate: ServerCertificate) {
        metrics.certificateLoaded(certificate)
        let facts: Logger.Metadata = [
            "certificate.serial": "\(certificate.serialNumber)",
            "certificate.expires": "\(certificate.expiresAt)",
        ]
        logger.notice("certificate loaded", metadata: facts)
        guard certificate.expiresAt < SystemWallClock().now() else { return }
        logger.warning("certificate has expired; clients refuse it", metadata: facts)
    }
}
