import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// Servers of the settings: which token, certificate and proxy goes to which of them.
@Suite(.timeLimit(.minutes(2)))
struct NamedServerTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    @Test(arguments: [
        (["--server", "@own"], "Bearer own"), ([], "Bearer own"),
        (["--server", "@bare"], "Bearer variable"),
        (["--server", "@own", "--token", "flag"], "Bearer flag"),
    ])
    func `a server's own token takes precedence over the variable, and a flag over both`(
        arguments: [String], credentials: String
    ) async throws {
        let server = try TokenServer()
        try fixture.write(
            """
            server: own
            servers:
              own:
                url: \(server.url)/own
                token: own
              bare:
                url: \(server.url)/bare
            """)
        try await fixture.run(
            ["files", "list"] + arguments, environment: ["KEDGE_TOKEN": "variable"])
        #expect(Set(server.credentials) == [credentials])
    }

    @Test func `a first word with @ is a server before the terminator, and a file after it`()
        async throws
    {
        let server = try await fixture.serve()
        try fixture.write(
            """
            server: work
            servers:
              work:
                url: \(server.url)
            """)
        let sample = try fixture.sample("@work", mebibytes: 1)
        for words in ["@work ./@work", "-- @work", "@work -- @work", "@work --server @work"] {
            let finished = try await fixture.shell("cd \"$HOME\" && \"$K\" upload --again \(words)")
            #expect(finished.termination == .exited(0), "\(words): \(finished.errors)")
            let id = finished.output.trimmingCharacters(in: .newlines)
            try await fixture.expectServed(sample, id: id, at: server.url)
        }
        let behind = try await fixture.shell("\"$K\" upload '\(sample.path)' @work2")
        #expect(behind.termination == .exited(ExitStatus.usage), "\(behind.errors)")
        let alone = try await fixture.shell("cd \"$HOME\" && \"$K\" upload @work")
        #expect(alone.termination == .exited(ExitStatus.usage))
        #expect(alone.errors.contains("./@work"), "\(alone.errors)")
        let unknown = try await fixture.shell(
            "cd \"$HOME\" && cp @work @wrok && \"$K\" upload @wrok @work")
        #expect(unknown.termination == .exited(ExitStatus.usage))
        #expect(unknown.errors.contains("./@wrok"), "\(unknown.errors)")
    }

    @Test func `a URL of two accounts is refused with their names, and a name chooses`()
        async throws
    {
        let server = try TokenServer()
        try fixture.write(
            """
            servers:
              home:
                url: \(server.url)
                token: one
              work:
                url: \(server.url)/
                token: two
            """)
        let refused = try await fixture.run(["files", "list", "--server", server.url])
        #expect(refused.termination == .exited(ExitStatus.usage))
        #expect(refused.errors.contains("@home and @work"))
        #expect(server.credentials == [])
        // Records need no account.
        let records = try await fixture.run(["transfers", "list", "--server", server.url])
        #expect(records.termination == .exited(0), "\(records.errors)")
        for (arguments, token) in [
            (["--server", "@home"], "one"), (["--server", "@work"], "two"),
            (["--server", server.url, "--token", "three"], "three"),
        ] {
            try await fixture.run(["files", "list"] + arguments)
            #expect(server.credentials.last == "Bearer \(token)")
        }
    }

    @Test(arguments: [("/files/", "/files"), ("/files", "/files/"), ("/files/", "/files//")])
    func `a transfer gets its server's token, however the slash at the end is written`(
        recorded: String, saved: String
    ) async throws {
        let server = try TokenServer()
        let sample = try fixture.sample(mebibytes: 1)
        let waiting = try await fixture.run([
            "upload", sample.path, "--protocol", "tus", "--server", server.url + recorded,
            "--max-wait", "0",
        ])
        #expect(waiting.termination == .exited(ExitStatus.network), "\(waiting.errors)")
        #expect(Set(server.credentials) == [""])
        try fixture.write(
            """
            server: other
            servers:
              other:
                url: http://127.0.0.1:1
              own:
                url: \(server.url)\(saved)
                token: own
            """)
        try await fixture.run(["transfers", "resume", "--all", "--max-wait", "0"])
        #expect(server.credentials.last == "Bearer own")
    }

    @Test(
        arguments: [
            ("/own/files/x", "own"), ("/other/x", nil), ("/ownfiles", nil), ("/asks/x", "asked"),
        ]
            as [(String, String?)])
    func `a URL gets the token of the server whose URL it begins with, and of no other`(
        path: String, token: String?
    ) async throws {
        let server = try TokenServer(status: "404 Not Found")
        try fixture.write(
            """
            servers:
              own:
                url: \(server.url)/own/
                token: own
              asks:
                url: \(server.url)/asks
                tokenCommand: echo asked
            """)
        for output in ["-", fixture.path("copy")] {
            let line = "\"$K\" download '\(server.url)\(path)' -o '\(output)' | cat"
            _ = try await fixture.shell(line, environment: ["KEDGE_TOKEN": "variable"])
        }
        #expect(Set(server.credentials) == [token.map { "Bearer \($0)" } ?? ""])
    }

    @Test(arguments: [true, false])
    func `a server's certificate authorities count for its own origin alone`(
        isOwn: Bool
    ) async throws {
        let sample = try fixture.sample(mebibytes: 1)
        let certificates = try await Certificates.make(in: fixture)
        let server = try await PythonServer.start(
            fixture.directory, certificate: [certificates.path(.none), certificates.key],
            in: fixture)
        let closed = try ScriptedServer.closedPort()
        try fixture.write(
            """
            server: work
            servers:
              work:
                url: https://127.0.0.1:\(isOwn ? server.port : closed)
                caFile: \(certificates.authority)
            """)
        let copy = fixture.path("copy.bin")
        let finished = try await fixture.run([
            "download", "https://127.0.0.1:\(server.port)/source.bin", "-o", copy, "--json",
        ])
        if isOwn {
            #expect(finished.termination == .exited(0), "\(finished.errors)")
            #expect(try SampleFile.digest(of: copy) == sample.digest)
        } else {
            #expect(finished.termination == .exited(ExitStatus.network))
            #expect(try finished.result.errorCode == "CERTIFICATE_REJECTED")
        }
    }

    @Test func `a server's proxy counts for its own origin alone`() async throws {
        let sample = try fixture.sample(mebibytes: 1)
        let (server, other) = (
            try await PythonServer.start(fixture.directory, in: fixture),
            try await PythonServer.start(fixture.directory, in: fixture)
        )
        let closed = try ScriptedServer.closedPort()
        try fixture.write(
            """
            server: work
            servers:
              work:
                url: http://127.0.0.1:\(server.port)
                proxy: http://127.0.0.1:\(closed)
            """)
        func download(from server: PythonServer) async throws -> Finished {
            try await fixture.run([
                "download", "http://127.0.0.1:\(server.port)/source.bin", "-o",
                fixture.path("\(server.port).bin"), "--max-wait", "0", "--json",
            ])
        }
        #expect(try await download(from: server).termination == .exited(ExitStatus.network))
        let finished = try await download(from: other)
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        #expect(try SampleFile.digest(of: fixture.path("\(other.port).bin")) == sample.digest)
    }
}
