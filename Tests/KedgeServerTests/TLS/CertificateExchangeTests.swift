import Foundation
import KedgeServer
import KedgeTesting
import Logging
import Testing

/// The certificate is exchanged while requests run.
@Suite(.timeLimit(.minutes(2))) struct CertificateExchangeTests {
    @Test func `uploads and downloads go on while the certificate is exchanged`() async throws {
        try await withSecureServer { secure in
            let content = sampleBytes(3 << 20)
            let source = try secure.server.fixture.directory.write(content, to: "source")
            let path = try await secure.upload(source)
            let certificates = [
                try await secure.authority.issue("second"),
                try await secure.authority.issue("third"),
            ]
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<3 {
                    group.addTask {
                        // Slow enough to be under way during the exchange.
                        try await secure.ask([
                            "--limit-rate", "2M", "--data-binary", "@\(source)", "--output",
                            "/dev/null", "\(secure.url)/files",
                        ])
                    }
                    group.addTask {
                        let isSame =
                            try await secure.download(path, ["--limit-rate", "2M"]) == content
                        #expect(isSame)
                    }
                }
                group.addTask {
                    for next in certificates {
                        try next.install(over: secure.issued)
                        await secure.server.service.reloadCertificate()
                        #expect(try await secure.serialNumber() == next.serialNumber)
                        try await secure.ask(["--output", "/dev/null", "\(secure.url)/files"])
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test func `a bad pair is logged, and the one before stays in use`() async throws {
        try await withSecureServer { secure in
            let other = try await secure.authority.issue("other")
            try Data(contentsOf: URL(fileURLWithPath: other.key)).write(
                to: URL(fileURLWithPath: secure.issued.key))
            await secure.server.service.reloadCertificate()
            let errors = secure.server.fixture.log.lines.filter { $0.level == .error }
            #expect(errors.count == 1)
            #expect(
                errors.first?.metadata["error"]?.description.contains(secure.issued.key) == true)
            #expect(try await secure.serialNumber() == secure.issued.serialNumber)
        }
    }

    @Test func `changed files are found by the regular check`() async throws {
        try await withSecureServer {
            $0.certificateCheckInterval = .milliseconds(50)
        } _: { secure in
            let next = try await secure.authority.issue("next")
            try next.install(over: secure.issued)
            let isNew = try await eventually {
                try await secure.serialNumber() == next.serialNumber
            }
            #expect(isNew)
        }
    }

    @Test func `the expiry of the certificate is a metric`() async throws {
        try await withSecureServer { secure in
            let expiry = try #require(
                try await secure.metric("kedge_tls_certificate_expiry_seconds"))
            let rest = expiry - Date.now.timeIntervalSince1970
            #expect(rest > 47 * 3600 && rest < 49 * 3600)
        }
    }

    @Test func `an expired certificate is served with a warning`() async throws {
        try await withSecureServer(days: -1) { secure async throws in
            #expect(try await secure.serialNumber() == secure.issued.serialNumber)
            let warnings = secure.server.fixture.log.lines.filter { $0.level == .warning }
            #expect(warnings.contains { $0.metadata["certificate.expires"] != nil })
            #expect(ListenPolicy.warnings(of: secure.server.fixture.configuration).count == 1)
        }
    }
}
