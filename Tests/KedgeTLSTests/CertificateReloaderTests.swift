import KedgeFiles
import KedgeModel
import KedgeTLS
import KedgeTesting
import Testing

/// The certificate of a server and its exchange.
@Suite(.timeLimit(.minutes(1))) struct CertificateReloaderTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private static func settings(
        _ issued: TestAuthority.Issued, _ minimum: TLSMinimum = .version12
    ) -> TLSSettings {
        TLSSettings(
            certificatePath: issued.certificate, keyPath: issued.key, minimum: minimum)
    }

    private func write(_ text: String, to path: String, permissions: UInt16 = 0o600) throws {
        let file = try POSIXFileSystem().open(path, .openOrCreate)
        try file.truncate(to: 0)
        try Array(text.utf8).withUnsafeBytes { try file.write($0, at: 0) }
        try file.setPermissions(permissions)
        try file.close()
    }

    private func reason(of settings: TLSSettings) -> CertificateFailure? {
        do throws(CertificateFailure) {
            _ = try ServerCertificate.load(settings)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [
        ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
        ["ec", "-pkeyopt", "ec_paramgen_curve:secp384r1", "-nodes"], ["rsa:2048", "-nodes"],
    ])
    func `a certificate with an ECDSA or RSA key is loaded with its expiry and serial number`(
        keyOptions: [String]
    ) async throws {
        let authority = try await TestAuthority.make(in: directory.path)
        let issued = try await authority.issue("server", keyOptions: keyOptions)
        for minimum in [TLSMinimum.version12, .version13] {
            let reloader = try CertificateReloader(Self.settings(issued, minimum))
            #expect(reloader.current.serialNumber == issued.serialNumber)
            let rest = reloader.current.expiresAt.duration(since: SystemWallClock().now())
            #expect(rest > .seconds(47 * 3600) && rest < .seconds(49 * 3600))
        }
    }

    @Test func `an expired certificate is loaded`() async throws {
        let authority = try await TestAuthority.make(in: directory.path)
        let issued = try await authority.issue("server", days: -1)
        let reloader = try CertificateReloader(Self.settings(issued))
        #expect(reloader.current.expiresAt < SystemWallClock().now())
    }

    @Test(arguments: [UInt16(0o640), 0o604, 0o620, 0o602, 0o610, 0o777])
    func `a key that other users can access is refused`(permissions: UInt16) async throws {
        let authority = try await TestAuthority.make(in: directory.path)
        let issued = try await authority.issue("server")
        let key = try POSIXFileSystem().open(issued.key, .readWrite)
        try key.setPermissions(permissions)
        try key.close()
        let failure = try #require(reason(of: Self.settings(issued)))
        #expect(failure.file == .key && failure.path == issued.key)
        #expect(failure.reason == .accessible(permissions: permissions))
    }

    @Test func `the key of another certificate is refused`() async throws {
        let authority = try await TestAuthority.make(in: directory.path)
        let issued = try await authority.issue("server")
        let other = try await authority.issue("other")
        var settings = Self.settings(issued)
        settings.keyPath = other.key
        #expect(reason(of: settings)?.reason == .mismatch)
        // The kind of the key differs, too.
        settings.keyPath = try await authority.issue("rsa", keyOptions: ["rsa:2048", "-nodes"]).key
        #expect(reason(of: settings)?.reason == .mismatch)
    }

    @Test(arguments: ["", "text", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"])
    func `a file without PEM is refused as what it was named for`(text: String) async throws {
        let authority = try await TestAuthority.make(in: directory.path)
        let issued = try await authority.issue("server")
        var settings = Self.settings(issued)
        settings.certificatePath = directory.path + "/bad.pem"
        try write(text, to: settings.certificatePath)
        let first = try #require(reason(of: settings))
        #expect(first.file == .certificate && first.reason == .malformed)
        settings = Self.settings(issued)
        settings.keyPath = directory.path + "/bad.pem"
        let second = try #require(reason(of: settings))
        #expect(second.file == .key && second.reason == .malformed)
    }

    @Test func `a key with a passphrase is refused without a question on the terminal`()
        async throws
    {
        let authority = try await TestAuthority.make(in: directory.path)
        let issued = try await authority.issue("server")
        let locked = directory.path + "/locked.key"
        try await Tool.require(
            "openssl",
            ["pkey", "-in", issued.key, "-aes256", "-passout", "pass:secret", "-out", locked])
        let key = try POSIXFileSystem().open(locked, .readWrite)
        try key.setPermissions(0o600)
        try key.close()
        var settings = Self.settings(issued)
        settings.keyPath = locked
        #expect(reason(of: settings)?.reason == .malformed)
    }

    @Test func `a missing file and a directory are refused`() async throws {
        let authority = try await TestAuthority.make(in: directory.path)
        let issued = try await authority.issue("server")
        var settings = Self.settings(issued)
        settings.keyPath = directory.path + "/nowhere"
        #expect(reason(of: settings)?.reason == .unreadable("no such file"))
        settings.keyPath = directory.path
        #expect(reason(of: settings)?.reason == .notCertificateFile)
    }

    @Test func `a reload takes the new pair, and keeps the old one if the new pair is bad`()
        async throws
    {
        let authority = try await TestAuthority.make(in: directory.path)
        let issued = try await authority.issue("server")
        let next = try await authority.issue("next")
        let reloader = try CertificateReloader(Self.settings(issued))
        try next.install(over: issued)
        #expect(try reloader.reload().serialNumber == next.serialNumber)
        #expect(reloader.current.serialNumber == next.serialNumber)

        try write("broken", to: issued.certificate)
        #expect(throws: CertificateFailure.self) { try reloader.reload() }
        #expect(reloader.current.serialNumber == next.serialNumber)
        _ = try POSIXFileSystem().remove(issued.key)
        #expect(throws: CertificateFailure.self) { try reloader.reload() }
        #expect(reloader.current.serialNumber == next.serialNumber)
    }

    @Test func `a regular check reads changed files, and reports a bad pair once`() async throws {
        let authority = try await TestAuthority.make(in: directory.path)
        let issued = try await authority.issue("server")
        let next = try await authority.issue("next")
        let reloader = try CertificateReloader(Self.settings(issued))
        #expect(try reloader.reloadIfChanged() == nil)

        try write("broken", to: issued.certificate)
        #expect(throws: CertificateFailure.self) { _ = try reloader.reloadIfChanged() }
        #expect(try reloader.reloadIfChanged() == nil)

        try next.install(over: issued)
        #expect(try reloader.reloadIfChanged()?.serialNumber == next.serialNumber)
        #expect(try reloader.reloadIfChanged() == nil)
        #expect(reloader.current.serialNumber == next.serialNumber)
    }
}
