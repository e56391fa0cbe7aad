import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// `kedge serve`: starting, refusing to start, and stopping.
///
/// Serialized, because what must happen within seconds needs the machine for itself.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct ServerTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    // Chunks in flight are finished or kept, within a deadline.
    @Test func `a server that is stopped keeps the chunks in flight`() async throws {
        let source = try fixture.sample(mebibytes: 32)
        let server = try await fixture.serve(["--shutdown-drain-seconds", "1"])
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 4 << 20))
        let client = try fixture.start(["upload", source.path, "--server", proxy.url, "--json"])
        try await eventually("chunks are in flight") { proxy.counts.upByteCount > 6 << 20 }
        let start = ContinuousClock.now
        server.process.signal(SIGTERM)
        #expect(try await server.process.wait(within: .seconds(20)) == .exited(0))
        #expect(start.duration(to: .now) < .seconds(8))
        let acknowledged = Set(server.requests.created.keys)
        let next = try await fixture.serve(port: server.port)
        let session = try #require(server.requests.sessionIDs.first)
        let status = try await fixture.session(session, at: next.url)
        #expect(acknowledged.subtracting(status.receivedChunks) == [])
        #expect(!status.partialChunks.isEmpty, "what was in flight is kept")
        proxy.faults = Faults()
        let finished = try await fixture.finish(client)
        try finished.expectCompleted(source)
        let requests = [server, next].requests
        #expect(requests.sessionIDs.count == 1)
        #expect(requests.created.filter { $0.value > 1 } == [:])
        #expect(proxy.counts.upByteCount < source.byteCount * 13 / 10)
        try await fixture.expectServed(source, id: finished.result.remoteFileId, at: next.url)
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func `an idle server stops at once`(signal: Int32) async throws {
        let server = try await fixture.serve()
        server.process.signal(signal)
        #expect(try await server.process.wait(within: .seconds(5)) == .exited(0))
        #expect(server.process.output == "")
    }

    @Test func `a second server on the same data is refused`() async throws {
        let first = try await fixture.serve()
        let arguments = ["serve", "--port", "0", "--data", fixture.path("data")]
        let second = try await fixture.run(arguments, within: .seconds(20))
        #expect(second.termination == .exited(ExitStatus.failure))
        #expect(second.errors.contains(fixture.path("data")))
        let sample = try fixture.sample(mebibytes: 1)
        _ = try await fixture.upload(sample, to: first.url)
        first.process.end()
        _ = try await fixture.serve()
    }

    @Test func `the printed configuration reads back unchanged`() async throws {
        let flags = [
            "--port", "8181", "--data", fixture.path("da\"ta \\ dir"), "--log-format", "json",
            "--limits-max-chunk-size", "8388608", "--shutdown-drain-seconds", "3",
        ]
        let printed = try await fixture.run(["serve", "--print-config"] + flags)
        #expect(printed.termination == .exited(0))
        #expect(printed.errors == "")
        let file = fixture.path("kedge.yaml")
        try printed.output.write(toFile: file, atomically: false, encoding: .utf8)
        let again = try await fixture.run(["serve", "--print-config", "--config", file])
        #expect(again.output == printed.output, "\(again.errors)")
        // Flags beat the environment, which beats the file.
        let mixed = try await fixture.run(
            ["serve", "--print-config", "--config", file, "--port", "1"],
            environment: ["KEDGE_PORT": "2", "KEDGE_LOG_FORMAT": "text"])
        #expect(mixed.output.contains("port: \"1\""))
        #expect(mixed.output.contains("format: \"text\""))
    }

    static let refusals: [(arguments: [String], environment: [String: String], yaml: String)] = [
        ([], ["KEDGE_PROT": "8080"], ""),
        ([], ["KEDGE_LIMITS_MAXFILESIZE": "5"], ""),
        ([], ["KEDGE_PORT": "eighty"], ""),
        ([], [:], "prot: 8080\n"),
        ([], [:], "limits:\n  maxFileSiz: 5\n"),
        ([], [:], "port: [1, 2]\n"),
        ([], [:], "port: \"8080\n"),
        (["--host", "0.0.0.0"], [:], ""),
        (["--allowed-hosts", "*"], [:], ""),
        (["--allowed-hosts", "files.example, *"], [:], ""),
        ([], [:], "allowedHosts: \"*\"\n"),
        (["--allow-any-host", "yes"], [:], ""),
        (["--storage-allow", "everything"], [:], ""),
        (["--host", "192.0.2.1"], [:], ""),
        (["--host", "::"], [:], ""),
        (["--log-level", "loud"], [:], ""),
        (["--limits-min-chunk-size", "9999999999"], [:], ""),
        (["--metadata", "oracle"], [:], ""),
        (["--durability", "none"], [:], ""),
        ([], [:], "durability: false\n"),
        (["--no-such-flag"], [:], ""),
    ]

    // Unknown keys are an error.
    @Test(arguments: refusals)
    func `a wrong setting is refused before the server starts`(
        refusal: (arguments: [String], environment: [String: String], yaml: String)
    ) async throws {
        let file = fixture.path("kedge.yaml")
        try refusal.yaml.write(toFile: file, atomically: false, encoding: .utf8)
        let arguments = ["serve", "--port", "0", "--data", fixture.path("data")]
        let more = refusal.environment["KEDGE_PORT"] == nil ? arguments : ["serve"]
        let finished = try await fixture.run(
            more + (refusal.yaml.isEmpty ? [] : ["--config", file]) + refusal.arguments,
            environment: refusal.environment, within: .seconds(10))
        #expect(finished.termination == .exited(ExitStatus.usage), "\(finished.errors)")
        #expect(finished.errors != "")
    }

    /// The text is the unprintable name of a member, in an error that is logged with its cause.
    @Test(arguments: ["text", "json"])
    func `control characters are escaped in log lines and problem documents`(
        format: String
    ) async throws {
        let server = try await fixture.serve(["--log-format", format])
        let text =
            "{\"fileName\":\"a\",\"fileSize\":1,\"metadata\":{\"x\u{9B}31m\u{2028}\u{202E}\":5}}"
        let answer = try fixture.post(text, to: "/uploads/sessions", at: server)
        #expect(answer.hasPrefix("HTTP/1.1 400"))
        #expect(answer.contains("metadata.x\\u009b31m\\u2028\\u202e"))
        try await eventually("the request is logged") {
            server.process.errors.contains("BAD_REQUEST")
        }
        let escape = format == "text" ? "x\\u{9b}31m\\u{2028}\\u{202e}" : "x\\u009b31m"
        #expect(server.process.errors.contains(escape))
        for shown in [answer, server.process.errors] {
            let steering = shown.unicodeScalars.filter {
                ControlCharacters.steers($0) && !"\r\n".unicodeScalars.contains($0)
            }
            #expect(steering.isEmpty)
        }
    }

    @Test(arguments: ["serve", "migrate"])
    func `a data directory that other users can write to is refused with the remedy`(
        command: String
    ) async throws {
        let data = fixture.path("data dir")
        try FileManager.default.createDirectory(
            atPath: data, withIntermediateDirectories: false)
        #expect(chmod(data, 0o775) == 0)
        let port = command == "serve" ? ["--port", "0"] : []
        let arguments = [command, "--data", data] + port
        let refused = try await fixture.run(arguments, within: .seconds(10))
        #expect(refused.termination == .exited(ExitStatus.configuration))
        #expect(refused.errors.contains("chmod go-w '\(data)'"), "\(refused.errors)")
        #expect(fixture.names(in: data) == [], "nothing was touched")
        _ = try await fixture.serve(data: "data dir", ["--storage-allow", "shared"])
    }

    /// The directory holds only spooled bytes, in unnamed files that only their owner can open.
    @Test func `a directory without stored data may be writable for other users`() async throws {
        let data = fixture.path("data")
        try FileManager.default.createDirectory(
            atPath: data, withIntermediateDirectories: false)
        #expect(chmod(data, 0o777) == 0)
        let finished = try await fixture.run(
            [
                "migrate", "--data", data, "--metadata", "postgresql://127.0.0.1:1/x",
                "--bytes", "s3://bucket/?endpoint=http://127.0.0.1:1&region=x&spool=\(data)",
            ], within: .seconds(30))
        #expect(finished.termination == .exited(ExitStatus.failure))
        #expect(!finished.errors.contains("chmod"))
    }

    @Test func `an impossible data directory is refused`() async throws {
        let file = try fixture.sample("file", mebibytes: 0, plus: 1)
        let finished = try await fixture.run(
            ["serve", "--port", "0", "--data", file.path + "/data"], within: .seconds(10))
        #expect(finished.termination == .exited(ExitStatus.failure))
        #expect(finished.errors != "")
    }

    @Test func `a port that is taken is refused`() async throws {
        let first = try await fixture.serve()
        let finished = try await fixture.run(
            ["serve", "--port", "\(first.port)", "--data", fixture.path("other")],
            within: .seconds(20))
        #expect(finished.termination == .exited(ExitStatus.failure))
        #expect(finished.errors != "")
    }

    @Test func `an address for metrics that is taken is refused`() async throws {
        let first = try await fixture.serve()
        let finished = try await fixture.run(
            [
                "serve", "--port", "0", "--data", fixture.path("other"), "--metrics-listen",
                "127.0.0.1:\(first.port)",
            ], within: .seconds(20))
        #expect(finished.termination == .exited(ExitStatus.failure))
        #expect(finished.errors.contains("metrics.listen"))
    }

    @Test func `metrics have an address of their own without credentials`() async throws {
        // A free port: the server of before has ended, and no other process asks for this one.
        let first = try await fixture.serve(data: "first")
        let free = first.port
        first.process.signal(SIGTERM)
        _ = try await first.process.wait()
        let server = try await fixture.serve(
            ["--identity-mode", "tokens", "--metrics-listen", "127.0.0.1:\(free)"])
        for (port, host, status) in [
            (free, "127.0.0.1", "200"), (free, "evil.example", "400"),
            (server.port, "127.0.0.1", "401"),
        ] {
            let answer = try await fixture.finish(
                try fixture.start(
                    program: "/usr/bin/curl",
                    [
                        "--silent", "--output", "/dev/null", "--write-out", "%{http_code}",
                        "--header", "Host: \(host)", "http://127.0.0.1:\(port)/metrics",
                    ]))
            #expect(answer.output == status)
        }
    }

    @Test func `the migrate command creates the database and ends`() async throws {
        let finished = try await fixture.run(["migrate", "--data", fixture.path("data")])
        #expect(finished.termination == .exited(0))
        #expect(fixture.names(in: fixture.path("data")).contains("kedge.sqlite"))
        _ = try await fixture.serve()
    }
}
