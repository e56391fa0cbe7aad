import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// `kedge login`: what it saves, and what it refuses.
@Suite(.timeLimit(.minutes(2)))
struct LoginTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private var file: String { "\(fixture.settings)/servers.yaml" }

    @Test func `logins at the same time all save their servers`() async throws {
        let port = try ScriptedServer.closedPort()
        let url = "http://127.0.0.1:\(port)"
        let finished = try await fixture.shell(
            """
            for n in 1 2 3 4 5 6 7 8; do
                echo token | "$K" login "s$n" "\(url)/$n" --force &
            done
            wait
            """)
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        let saved = try String(contentsOfFile: file, encoding: .utf8)
        for number in 1...8 { #expect(saved.contains("\(url)/\(number)\""), "\(saved)") }
        let temporary = fixture.names(in: fixture.settings).filter { !$0.hasSuffix(".lock") }
        #expect(temporary == ["servers.yaml"])
    }

    @Test(arguments: [
        "0x10", "1e5", "007", "1_000", "true", "no", "null", "~", "a: b", "#a", "a #b", "'a'",
        "\"a\"", "-", "!a", "&a", "*a", "%a", "@a", "\\a", "{a}", "2026-01-01",
    ])
    func `a token is saved as text, whatever YAML makes of it`(token: String) async throws {
        let server = try TokenServer()
        let saved = try await fixture.shell(
            "printf '%s\\n' \"$TOKEN\" | \"$K\" login own '\(server.url)' --force",
            environment: ["TOKEN": token])
        #expect(saved.termination == .exited(0), "\(saved.errors)")
        // Another server changes nothing about the first.
        let other = try await fixture.shell(
            "echo token | \"$K\" login other '\(server.url)/other' --force")
        #expect(other.termination == .exited(0), "\(other.errors)")
        try await fixture.run(["files", "list", "--server", "@own"])
        #expect(server.credentials.last == "Bearer \(token)")
    }

    @Test(arguments: ["0x10", "1e5", "007", "~", "true"])
    func `a token that was written by hand survives a login`(token: String) async throws {
        let server = try TokenServer()
        try fixture.write(
            "servers:\n  own:\n    url: \(server.url)\n    token: \(token)\n",
            toSettings: "servers.yaml")
        let other = try await fixture.shell(
            "echo token | \"$K\" login other '\(server.url)/other' --force")
        #expect(other.termination == .exited(0), "\(other.errors)")
        try await fixture.run(["files", "list", "--server", "@own"])
        #expect(server.credentials.last == "Bearer \(token)")
    }

    @Test(arguments: [
        ("files.example.org", ""), ("http://", ""), ("http://127.0.0.1:1", "--ca-file missing.pem"),
        ("http://127.0.0.1:1", "--token-file missing"),
    ])
    func `force does not save a server whose address or files are wrong`(
        url: String, options: String
    ) async throws {
        let finished = try await fixture.shell("\"$K\" login own '\(url)' --force \(options)")
        #expect(finished.termination == .exited(ExitStatus.usage), "\(finished.errors)")
        #expect(!FileManager.default.fileExists(atPath: file))
        #expect(!finished.errors.contains("--force"))
    }

    @Test func `force does not save a token that the server refuses`() async throws {
        let server = try TokenServer(status: "401 Unauthorized")
        let finished = try await fixture.shell(
            "echo wrong | \"$K\" login own '\(server.url)' --force")
        #expect(finished.termination == .exited(ExitStatus.denied), "\(finished.errors)")
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    @Test(arguments: ["503 Service Unavailable", "404 Not Found"])
    func `force saves a server that does not answer as a Kedge`(status: String) async throws {
        let server = try TokenServer(status: status)
        let line = "echo token | \"$K\" login own '\(server.url)'"
        let refused = try await fixture.shell(line)
        #expect(refused.termination != .exited(0))
        #expect(refused.errors.contains("--force"), "\(refused.errors)")
        #expect(!FileManager.default.fileExists(atPath: file))
        let forced = try await fixture.shell(line + " --force")
        #expect(forced.termination == .exited(0), "\(forced.errors)")
        #expect(FileManager.default.fileExists(atPath: file))
    }
}
