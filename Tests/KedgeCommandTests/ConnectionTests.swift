import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// The command with servers that are away, of another kind than expected, or not trusted.
///
/// Serialized, because what must happen within seconds needs the machine for itself.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct ConnectionTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private func upload(_ sample: SampleFile, _ server: String, _ more: String...) -> [String] {
        ["upload", sample.path, "--server", server, "--json"] + more
    }

    /// A port without a listener until the test starts one there.
    private func freePort() throws -> UInt16 {
        let (socket, port) = try LoopbackSocket.bound()
        close(socket)
        return port
    }

    @Test func `an unreachable server is reported with host, port, reason and next attempt`()
        async throws
    {
        let sample = try fixture.sample(mebibytes: 1)
        let port = try freePort()
        let url = "http://127.0.0.1:\(port)"
        let gaveUp = try await fixture.run(upload(sample, url, "--max-wait", "2s"))
        #expect(gaveUp.termination == .exited(ExitStatus.network))
        let lines = try TransferLine.all(gaveUp.output)
        let waiting = try #require(lines.first { $0.nextAttemptAt != nil })
        #expect(waiting.state == "queued")
        #expect(waiting.errorCode == "OFFLINE")
        #expect(waiting.cause == "refused")
        #expect(waiting.host == "127.0.0.1")
        #expect(waiting.port == Int(port))
        #expect(lines.compactMap(\.attempt).max() ?? 0 > 2)
        #expect(gaveUp.errors.contains("127.0.0.1:\(port)"))
        #expect(try gaveUp.result.nextAttemptAt == nil)

        let text = try await fixture.run(
            ["upload", sample.path, "--server", url, "--max-wait", "2"])
        #expect(
            text.errors.contains("cannot reach 127.0.0.1:\(port): connection refused; attempt 3, "))

        let server = try await fixture.serve(port: port)
        let finished = try await fixture.run(upload(sample, server.url))
        try finished.expectCompleted(sample)
        #expect(try finished.result.transferId == gaveUp.result.transferId)
        // The client knows this server by now, so it waits for it.
        server.process.signal(SIGKILL)
        _ = try await server.process.wait()
        let other = try fixture.sample("other.bin", mebibytes: 1, seed: 3)
        let failed = try await fixture.run(upload(other, url, "--retries", "3"))
        #expect(failed.termination == .exited(ExitStatus.network))
        #expect(try failed.result.state == "failed")
        #expect(try failed.result.attempt == 4)
    }

    @Test(arguments: [false, true])
    func `a server that accepts connections and never answers is given up in time`(
        isStream: Bool
    ) async throws {
        let sample = try fixture.sample(mebibytes: 1)
        // The kernel accepts what no process takes.
        let (socket, port) = try LoopbackSocket.bound()
        defer { close(socket) }
        #expect(listen(socket, 16) == 0)
        let url = "http://127.0.0.1:\(port)"
        let command =
            isStream
            ? ["upload", "--name", "x", "--server", url, "--max-wait", "3", "--", "echo", "x"]
            : upload(sample, url, "--max-wait", "3")
        let began = ContinuousClock.now
        let gaveUp = try await fixture.run(command, within: .seconds(30))
        #expect(began.duration(to: .now) < .seconds(15))
        #expect(gaveUp.termination == .exited(ExitStatus.network), "\(gaveUp.errors)")
        if isStream { #expect(gaveUp.errors.contains("has not answered")) }
    }

    // Every resolver refuses an empty label, even without a network.
    @Test(arguments: [true, false])
    func `a host name that does not exist ends the command at once`(isUpload: Bool) async throws {
        let sample = try fixture.sample(mebibytes: 1)
        let command =
            isUpload
            ? upload(sample, "http://a..b")
            : ["download", "http://a..b/x.bin", "-o", fixture.path("x.bin"), "--json"]
        let first = try await fixture.run(command, within: .seconds(10))
        #expect(first.termination == .exited(ExitStatus.network))
        #expect(try first.result.errorCode == "NAME_NOT_FOUND")
        #expect(try first.result.cause == "nameNotFound")
        let second = try await fixture.run(command, within: .seconds(10))
        #expect(try second.result.transferId == first.result.transferId)
    }

    @Test func `a plain file server is reported as no Kedge server`() async throws {
        let sample = try fixture.sample(mebibytes: 1)
        let server = try await PythonServer.start(fixture.directory, in: fixture)
        let finished = try await fixture.run(
            upload(sample, "http://127.0.0.1:\(server.port)"), within: .seconds(10))
        #expect(finished.termination == .exited(ExitStatus.usage))
        #expect(try finished.result.errorCode == "NOT_KEDGE")
    }

    @Test func `a port without TLS is reported for an https address`() async throws {
        let sample = try fixture.sample(mebibytes: 1)
        let server = try await fixture.serve()
        let finished = try await fixture.run(
            upload(sample, "https://127.0.0.1:\(server.port)"), within: .seconds(10))
        #expect(finished.termination == .exited(ExitStatus.network))
        #expect(try finished.result.errorCode == "TLS_REFUSED")
    }

    @Test(arguments: [
        (Certificates.Flaw.expired, true, "certificateExpired"),
        (.wrongHost, true, "certificateWrongHost"), (.none, false, "certificateUntrusted"),
    ])
    func `a rejected certificate is reported with its reason`(
        flaw: Certificates.Flaw, isTrusted: Bool, cause: String
    ) async throws {
        let sample = try fixture.sample(mebibytes: 1)
        let certificates = try await Certificates.make(in: fixture)
        let server = try await PythonServer.start(
            fixture.directory, certificate: [certificates.path(flaw), certificates.key], in: fixture
        )
        let trust = isTrusted ? ["--ca-file", certificates.authority] : []
        let url = "https://127.0.0.1:\(server.port)"
        let commands = [
            upload(sample, url), ["download", "\(url)/x", "-o", fixture.path("x"), "--json"],
        ]
        for command in commands {
            let finished = try await fixture.run(command + trust, within: .seconds(10))
            #expect(finished.termination == .exited(ExitStatus.network))
            #expect(try finished.result.errorCode == "CERTIFICATE_REJECTED")
            #expect(try finished.result.cause == cause)
            #expect(try finished.result.port == Int(server.port))
        }
    }

    @Test(arguments: [true, false])
    func `a certificate authority is named by a flag or by the environment`(
        isFlag: Bool
    ) async throws {
        let sample = try fixture.sample(mebibytes: 1)
        let certificates = try await Certificates.make(in: fixture)
        let server = try await PythonServer.start(
            fixture.directory, certificate: [certificates.path(.none), certificates.key],
            in: fixture)
        let copy = fixture.path("copy.bin")
        let finished = try await fixture.run(
            ["download", "https://127.0.0.1:\(server.port)/source.bin", "-o", copy]
                + (isFlag ? ["--ca-file", certificates.authority] : []),
            environment: isFlag ? [:] : ["SSL_CERT_FILE": certificates.authority])
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        #expect(try SampleFile.digest(of: copy) == sample.digest)
    }

    @Test func `an unreadable file of certificate authorities is reported`() async throws {
        let url = "https://127.0.0.1:1/x"
        let finished = try await fixture.run(
            ["download", url, "-o", fixture.path("x"), "--ca-file", fixture.path("missing")],
            within: .seconds(10))
        #expect(finished.termination == .exited(ExitStatus.usage))
        #expect(finished.errors.contains(fixture.path("missing")))
    }

    // An empty variable counts as unset.
    @Test func `an empty SSL_CERT_FILE leaves the certificate authorities of the system`()
        async throws
    {
        let finished = try await fixture.run(
            ["download", "https://127.0.0.1:1/x", "-o", fixture.path("x"), "--max-wait", "0"],
            environment: ["SSL_CERT_FILE": ""], within: .seconds(10))
        #expect(finished.errors.contains("connection refused"))
    }
}
