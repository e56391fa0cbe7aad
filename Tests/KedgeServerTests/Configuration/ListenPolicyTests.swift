import KedgeFiles
import KedgeServer
import KedgeTLS
import KedgeTesting
import Testing

/// Settings with which a service does not start.
@Suite(.timeLimit(.minutes(1))) struct ListenPolicyTests {
    private static func configuration(
        _ flags: [ConfigurationKey: String]
    ) async throws -> ServiceConfiguration {
        try await ConfigurationLoader(flags: flags, environment: [:], file: nil).configuration()
    }

    /// Expects a refusal that names the setting.
    private static func expectRefusal(
        _ setting: String, _ flags: [ConfigurationKey: String],
        _ location: SourceLocation = #_sourceLocation
    ) async throws {
        let error = await #expect(throws: ConfigurationError.self, sourceLocation: location) {
            try ListenPolicy.check(try await configuration(flags))
        }
        let text = try #require(error?.description, sourceLocation: location)
        #expect(text.contains(setting), sourceLocation: location)
        #expect(!text.contains { $0.isNewline }, sourceLocation: location)
    }

    @Test func `beyond loopback, the service needs tokens and TLS`() async throws {
        let directory = try TemporaryDirectory()
        let issued = try await TestAuthority.make(in: directory.path).issue("server")
        let tls: [ConfigurationKey: String] = [
            .host: "0.0.0.0", .tlsCertificate: issued.certificate, .tlsKey: issued.key,
        ]
        try await Self.expectRefusal("identity.mode", tls)
        try await Self.expectRefusal(
            "tls.certificate", [.host: "0.0.0.0", .identityMode: "tokens"])
        try await Self.expectRefusal(
            "trustedProxies",
            [.host: "0.0.0.0", .identityMode: "tokens", .identityPlainHTTP: "on"])
        try ListenPolicy.check(
            try await Self.configuration(tls.merging([.identityMode: "tokens"]) { $1 }))
        withExtendedLifetime(directory) {}
    }

    @Test(
        arguments: [
            ("0.0.0.0", "", true), ("192.0.2.1", "", true), ("0.0.0.0", "files.example", false),
            ("127.0.0.1", "", false),
        ])
    func `a service beyond loopback that accepts no host is warned of`(
        host: String, allowedHosts: String, isWarned: Bool
    ) async throws {
        let configuration = try await Self.configuration([
            .host: host, .allowedHosts: allowedHosts, .publicAddress: "https://files.example",
        ])
        let warnings = ListenPolicy.warnings(of: configuration)
        #expect(warnings.map { $0.contains("allowedHosts") } == (isWarned ? [true] : []))
    }

    @Test func `a certificate without a key and a key without a certificate are refused`()
        async throws
    {
        try await Self.expectRefusal("tls.key", [.tlsCertificate: "/c.pem"])
        try await Self.expectRefusal("tls.certificate", [.tlsKey: "/k.pem"])
    }

    @Test(arguments: ["1.1", "1.0", "1", "", "TLS1.2", "1.4"])
    func `an unknown minimum of TLS is refused`(minimum: String) async throws {
        try await Self.expectRefusal("tls.minimum", [.tlsMinimum: minimum])
    }

    @Test func `a key that is open to others or does not fit is refused with its path`()
        async throws
    {
        let directory = try TemporaryDirectory()
        let authority = try await TestAuthority.make(in: directory.path)
        let issued = try await authority.issue("server")
        let other = try await authority.issue("other")
        try await Self.expectRefusal(
            "tls.key: \(other.key)", [.tlsCertificate: issued.certificate, .tlsKey: other.key])
        try await Self.expectRefusal(
            "tls.certificate: /nowhere", [.tlsCertificate: "/nowhere", .tlsKey: other.key])
        let key = try POSIXFileSystem().open(issued.key, .readWrite)
        try key.setPermissions(0o640)
        try key.close()
        try await Self.expectRefusal(
            "chmod", [.tlsCertificate: issued.certificate, .tlsKey: issued.key])
        withExtendedLifetime(directory) {}
    }
}
