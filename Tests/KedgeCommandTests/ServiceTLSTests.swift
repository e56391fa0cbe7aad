import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// `kedge serve` with TLS of its own, and the command as its client.
@Suite(.timeLimit(.minutes(3)))
struct ServiceTLSTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private func settings(_ certificates: Certificates, _ path: String? = nil) -> [String] {
        [
            "--tls-certificate", path ?? certificates.path(.none), "--tls-key", certificates.key,
        ]
    }

    /// Uploads a file; the result names why it failed.
    private func upload(
        _ sample: SampleFile, to server: Server, trusting authority: String? = nil
    ) async throws -> Finished {
        try await fixture.run(
            ["upload", sample.path, "--server", server.url, "--json"]
                + (authority.map { ["--ca-file", $0] } ?? []), within: .seconds(30))
    }

    @Test func `a file goes to a service with TLS and comes back`() async throws {
        let certificates = try await Certificates.make(in: fixture)
        let server = try await fixture.serve(settings(certificates))
        #expect(server.url.hasPrefix("https://"))
        let sample = try fixture.sample(mebibytes: 9)
        let uploaded = try await upload(sample, to: server, trusting: certificates.authority)
        try uploaded.expectCompleted(sample)
        let copy = fixture.path("copy")
        let downloaded = try await fixture.run([
            "download", try #require(try uploaded.result.remoteFileId), "-o", copy, "--server",
            server.url, "--ca-file", certificates.authority,
        ])
        #expect(downloaded.termination == .exited(0), "\(downloaded.errors)")
        #expect(try SampleFile.digest(of: copy) == sample.digest)
        server.process.signal(SIGTERM)
        #expect(try await server.process.wait(within: .seconds(20)) == .exited(0))
    }

    @Test(arguments: [
        (Certificates.Flaw.expired, true, "certificateExpired"),
        (.wrongHost, true, "certificateWrongHost"), (.none, false, "certificateUntrusted"),
    ])
    func `the client names what is wrong with the certificate of the service`(
        flaw: Certificates.Flaw, isTrusted: Bool, cause: String
    ) async throws {
        let certificates = try await Certificates.make(in: fixture)
        let server = try await fixture.serve(settings(certificates, certificates.path(flaw)))
        let sample = try fixture.sample(mebibytes: 1)
        let finished = try await upload(
            sample, to: server, trusting: isTrusted ? certificates.authority : nil)
        #expect(finished.termination == .exited(ExitStatus.network))
        #expect(try finished.result.errorCode == "CERTIFICATE_REJECTED")
        #expect(try finished.result.cause == cause)
    }

    @Test
    func `SIGHUP takes the new certificate, keeps the old one if it is bad, and ends nothing`()
        async throws
    {
        let certificates = try await Certificates.make(in: fixture)
        let path = fixture.path("live.pem")
        let install = { (text: String) in
            try text.write(toFile: path, atomically: false, encoding: .utf8)
        }
        try install(String(contentsOfFile: certificates.path(.none), encoding: .utf8))
        let server = try await fixture.serve(settings(certificates, path))
        let sample = try fixture.sample(mebibytes: 1)
        try await upload(sample, to: server, trusting: certificates.authority)
            .expectCompleted(sample)

        try install("broken")
        server.process.signal(SIGHUP)
        try await eventually("the bad file is reported") {
            server.process.errors.contains("certificate reload failed")
        }
        try await upload(
            fixture.sample("second.bin", mebibytes: 1, seed: 2), to: server,
            trusting: certificates.authority
        ).expectCompleted(fixture.sample("second.bin", mebibytes: 1, seed: 2))

        // An expired one: the error of the client shows that it got this one.
        try install(String(contentsOfFile: certificates.path(.expired), encoding: .utf8))
        server.process.signal(SIGHUP)
        try await eventually("the certificate is exchanged") {
            server.process.errors.contains("certificate has expired")
        }
        let refused = try await upload(
            fixture.sample("third.bin", mebibytes: 1, seed: 3), to: server,
            trusting: certificates.authority)
        #expect(try refused.result.cause == "certificateExpired")
        #expect(server.process.isRunning)
    }

    @Test func `--check-config refuses a key that others can read, and warns of an expired one`()
        async throws
    {
        let certificates = try await Certificates.make(in: fixture)
        let check = ["serve", "--check-config"]
        let good = try await fixture.run(check + settings(certificates))
        #expect(good.termination == .exited(0) && good.errors == "The settings are valid.\n")
        let expired = try await fixture.run(
            check + settings(certificates, certificates.path(.expired)))
        #expect(expired.termination == .exited(0) && expired.errors.contains("tls.certificate"))
        #expect(chmod(certificates.key, 0o644) == 0)
        for command in [check, ["serve", "--port", "0", "--data", fixture.path("data")]] {
            let open = try await fixture.run(
                command + settings(certificates), within: .seconds(20))
            #expect(open.termination == .exited(ExitStatus.configuration))
            #expect(open.errors.contains(certificates.key))
        }
    }
}
