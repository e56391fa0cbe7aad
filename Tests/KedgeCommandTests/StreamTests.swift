import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// Uploads of standard input and of the output of commands; downloads to standard output.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct StreamTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    /// Runs a line of a shell in which `$K` is the command.
    private func shell(_ line: String, server: String) async throws -> Finished {
        let process = try fixture.start(
            program: "/bin/sh", ["-c", line],
            environment: ["K": try Command.path(), "KEDGE_SERVER": server])
        return try await fixture.finish(process)
    }

    private func fileNames(_ server: Server) async throws -> [String] {
        let finished = try await fixture.run(["files", "list", "--json", "--server", server.url])
        return try finished.output.split(separator: "\n").map {
            try JSONDecoder().decode(FileMeta.self, from: Data($0.utf8)).fileName
        }
    }

    private func expectNothing(
        _ server: Server, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        #expect(try await fileNames(server) == [], sourceLocation: sourceLocation)
        let sessions = try await fixture.run(["session", "list", "--server", server.url])
        #expect(sessions.output == "", sourceLocation: sourceLocation)
    }

    @Test(arguments: [0, 1, 8 << 20, 20 << 20 + 7])
    func `standard input becomes a file, and comes back on standard output`(
        byteCount: Int
    ) async throws {
        let server = try await fixture.serve()
        let source = try SampleFile.write(
            fixture.path("source"), byteCount: byteCount, seed: 3)
        let uploaded = try await shell(
            "cat '\(source.path)' | $K upload - --name x.bin --size \(byteCount)"
                + " --sha256 \(source.digest.hex)", server: server.url)
        #expect(uploaded.termination == .exited(0), "\(uploaded.errors)")
        let id = uploaded.output.trimmingCharacters(in: .newlines)
        try await fixture.expectServed(source, id: id, at: server.url)
        let copy = fixture.path("copy")
        let downloaded = try await shell("$K download last -o - > '\(copy)'", server: server.url)
        #expect(downloaded.termination == .exited(0), "\(downloaded.errors)")
        #expect(try SampleFile.digest(of: copy) == source.digest)
    }

    @Test func `streams go on over a link that breaks, also when the server is killed`()
        async throws
    {
        let source = try fixture.sample(mebibytes: 40, plus: 11)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(
            to: server.port, Faults(cutsAfter: 3 << 20, bytesPerSecond: 8 << 20))
        let client = try fixture.start(
            program: "/bin/sh",
            ["-c", "cat '\(source.path)' | \(try Command.path()) upload - --name x --max-wait 20"],
            environment: ["KEDGE_SERVER": proxy.url])
        try await Task.sleep(for: .seconds(3))
        server.process.signal(SIGKILL)
        _ = try await server.process.wait()
        proxy.upstreamPort = try await fixture.serve().port
        let uploaded = try await fixture.finish(client)
        #expect(uploaded.termination == .exited(0), "\(uploaded.errors)")
        // A cut takes at most the bytes that are not acknowledged yet.
        #expect(proxy.counts.upByteCount < source.byteCount * 13 / 10)
        let copy = fixture.path("copy")
        let downloaded = try await shell(
            "$K download last -o - > '\(copy)'", server: proxy.url)
        #expect(downloaded.termination == .exited(0), "\(downloaded.errors)")
        #expect(try SampleFile.digest(of: copy) == source.digest)
    }

    @Test func `a stream follows a limit that changes while it runs`() async throws {
        let server = try await fixture.serve()
        let source = try fixture.sample(mebibytes: 12)
        let client = try fixture.start(
            program: "/bin/sh",
            ["-c", "cat '\(source.path)' | \(try Command.path()) upload - --name x --bwlimit 64K"],
            environment: ["KEDGE_SERVER": server.url])
        // At the first rate, it would take three minutes.
        try await Task.sleep(for: .seconds(2))
        #expect(client.isRunning)
        let changed = try await fixture.run(["transfers", "limit", "off"])
        #expect(changed.termination == .exited(0), "\(changed.errors)")
        let finished = try await fixture.finish(client, within: .seconds(30))
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        let id = finished.output.trimmingCharacters(in: .newlines)
        try await fixture.expectServed(source, id: id, at: server.url)
    }

    @Test(arguments: [
        ("echo abc | $K upload - --name x --size 5", "FILE_TRUNCATED"),
        ("echo abc | $K upload - --name x --size 3", "SIZE_MISMATCH"),
        (
            "echo abc | $K upload - --name x --sha256 \(String(repeating: "0", count: 64))",
            "INTEGRITY_MISMATCH"
        ),
        ("$K upload --name x -- sh -c 'echo abc; exit 3'", "exited with status 3"),
        ("$K upload --name x -- sh -c 'echo abc; kill -9 $$'", "ended by signal 9"),
    ])
    func `input that is not as announced leaves nothing`(
        line: String, message: String
    ) async throws {
        let server = try await fixture.serve()
        let finished = try await shell(line, server: server.url)
        #expect(finished.termination == .exited(ExitStatus.integrity))
        #expect(finished.errors.contains(message))
        #expect(finished.output == "")
        try await expectNothing(server)
    }

    @Test func `the output of a command that succeeds becomes a file`() async throws {
        let server = try await fixture.serve()
        let finished = try await shell(
            "$K upload --name x.txt -- printf '%s %s' a --name", server: server.url)
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        let downloaded = try await shell("$K download last -o -", server: server.url)
        #expect(downloaded.output == "a --name")
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
    func `a signal ends a stream whose input is silent, and leaves nothing`(
        signal: Int32
    ) async throws {
        let server = try await fixture.serve()
        let client = try fixture.start(
            ["upload", "--name", "x", "--server", server.url, "--", "sleep", "60"])
        try await eventually("the upload was created") { server.requests.sessionIDs.count == 1 }
        try await Task.sleep(for: .milliseconds(500))
        client.signal(signal)
        #expect(try await client.wait(within: .seconds(10)) == .exited(128 + signal))
        try await expectNothing(server)
    }

    @Test func `a signal ends the wait for a command that has closed its output`() async throws {
        let server = try await fixture.serve()
        let client = try fixture.start([
            "upload", "--name", "x", "--server", server.url, "--", "sh", "-c",
            "echo abc; exec 1>&-; exec sleep 60",
        ])
        try await eventually("the bytes are there") {
            server.requests.contains { $0.method == "PATCH" && $0.status < 300 }
        }
        client.signal(SIGTERM)
        #expect(try await client.wait(within: .seconds(10)) == .exited(128 + SIGTERM))
        try await expectNothing(server)
    }

    @Test(arguments: [
        "$K upload --name x -- no-such-command", "echo a | $K upload - --name a/b",
        "echo a | $K upload - --name x --dry-run", "echo a | $K upload - --name ''",
        "echo a | $K upload -",
    ])
    func `wrong usage of streams is refused and leaves nothing`(line: String) async throws {
        let server = try await fixture.serve()
        let finished = try await shell(line, server: server.url)
        #expect(finished.termination == .exited(ExitStatus.usage), "\(finished.errors)")
        try await expectNothing(server)
    }

    @Test func `no wrong byte is written to standard output`() async throws {
        let server = try await fixture.serve()
        let source = try fixture.sample(mebibytes: 12)
        let id = try await fixture.upload(source, to: server.url)
        let copy = fixture.path("copy")
        // Some of the answers have a wrong byte, then each of them.
        let rare = try fixture.proxy(to: server.port, Faults(direction: .down, flipsEvery: 9 << 20))
        let downloaded = try await shell(
            "$K download \(id) -o - > '\(copy)'", server: rare.url)
        #expect(downloaded.termination == .exited(0), "\(downloaded.errors)")
        #expect(try SampleFile.digest(of: copy) == source.digest)
        let always = try fixture.proxy(
            to: server.port, Faults(direction: .down, flipsEvery: 100_000))
        let refused = try await shell(
            "$K download \(id) -o - > '\(copy)'", server: always.url)
        #expect(refused.termination != .exited(0))
        #expect(try Data(contentsOf: URL(fileURLWithPath: copy)).isEmpty)
    }

    @Test func `a reader that leaves ends the download`() async throws {
        let server = try await fixture.serve()
        let source = try fixture.sample(mebibytes: 12)
        let id = try await fixture.upload(source, to: server.url)
        let finished = try await shell(
            "{ $K download \(id) -o -; echo $? >&2; } | head -c 3 >/dev/null", server: server.url)
        #expect(finished.errors == "\(128 + SIGPIPE)\n")
    }
}
