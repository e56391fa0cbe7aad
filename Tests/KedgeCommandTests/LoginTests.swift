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
}
