package import KedgeFiles
internal import KedgeLocks

/// The certificate of a server, which can be exchanged while it runs.
///
/// New connections use the latest certificate. Those that are open keep theirs.
package final class CertificateReloader: Sendable {
    private let settings: TLSSettings
    private let fileSystem: any FileSystem
    private let certificate: Mutex<ServerCertificate>
    /// The files of the latest attempt, good or bad. Held during an attempt, so that an earlier one
    /// cannot replace the certificate of a later one.
    private let attempt: Mutex<[FileStatus?]>

    /// Reads and checks both files. Blocks.
    package init(
        _ settings: TLSSettings, fileSystem: any FileSystem = POSIXFileSystem()
    ) throws(CertificateFailure) {
        self.settings = settings
        self.fileSystem = fileSystem
        let seen = Self.statuses(settings, fileSystem)
        let loaded = try ServerCertificate.load(settings, from: fileSystem)
        attempt = Mutex(seen)
        certificate = Mutex(loaded)
    }

    /// The certificate of new connections.
    package var current: ServerCertificate { certificate.withLock { $0 } }

    /// Reads both files again. Blocks.
    ///
    /// - Throws: ``CertificateFailure``; the certificate before stays in use.
    @discardableResult
    package func reload() throws(CertificateFailure) -> ServerCertificate {
        let result: Result<ServerCertificate, CertificateFailure> = attempt.withLock { seen in
            seen = Self.statuses(settings, fileSystem)
            return load()
        }
        return try result.get()
    }

    /// Reads both files again if one of them has changed since the latest attempt. Blocks.
    ///
    /// - Returns: Nil if neither has changed.
    /// - Throws: ``CertificateFailure``, once for each change; the certificate before stays in use.
    package func reloadIfChanged() throws(CertificateFailure) -> ServerCertificate? {
        let result: Result<ServerCertificate, CertificateFailure>? = attempt.withLock { seen in
            // Before the files are read, so that a change during it is seen by the next attempt.
            let found = Self.statuses(settings, fileSystem)
            guard found != seen else { return nil }
            seen = found
            return load()
        }
        return try result?.get()
    }

    private func load() -> Result<ServerCertificate, CertificateFailure> {
        do throws(CertificateFailure) {
            let loaded = try ServerCertificate.load(settings, from: fileSystem)
            certificate.withLock { $0 = loaded }
            return .success(loaded)
        } catch {
            return .failure(error)
        }
    }

    private static func statuses(
        _ settings: TLSSettings, _ fileSystem: any FileSystem
    ) -> [FileStatus?] {
        [settings.certificatePath, settings.keyPath].map { path in
            // A file that cannot be opened has no status; reading it says why.
            try? fileSystem.open(path, .readFollowingLinks).status()
        }
    }
}
