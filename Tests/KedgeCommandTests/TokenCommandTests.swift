import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// Commands and files of the settings that have a token.
@Suite(.timeLimit(.minutes(3)))
struct TokenCommandTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    @Test(arguments: ["sleep 300; echo token", "echo token; sleep 300 >&2", "exec >&-; sleep 300"])
    func `a command without an end is ended after a minute`(line: String) async throws {
        let server = try TokenServer()
        let leader = fixture.path("leader")
        try fixture.write(
            """
            servers:
              own:
                url: \(server.url)
                tokenCommand: "echo $$ > \(leader); \(line)"
            """)
        let began = ContinuousClock.now
        let finished = try await fixture.run(
            ["files", "list", "--server", "@own"], within: .seconds(120))
        #expect(finished.termination == .exited(ExitStatus.usage))
        #expect((50..<100).contains(began.duration(to: .now) / .seconds(1)))
        #expect(finished.errors.contains("took longer than 60 s"), "\(finished.errors)")
        #expect(server.credentials == [])
        let text = try String(contentsOfFile: leader, encoding: .utf8)
        let group = text.trimmingCharacters(in: .newlines)
        try await eventually("the command and its children end") { !isRunning(group: group) }
    }

    /// Whether a process of the group runs. One that has ended may still be listed.
    private func isRunning(group: String) -> Bool {
        fixture.names(in: "/proc").contains { name in
            // A process that ends now has no file any more.
            let facts = try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8)
            // After the name in parentheses: state, parent, group.
            guard let fields = facts?.split(separator: ")").last?.split(separator: " "),
                fields.count > 2
            else { return false }
            return fields[2] == group && fields[0] != "Z"
        }
    }

    @Test(arguments: [
        ("pass show hush", "pass"), ("/no/such/pass hush", "pass"), ("false hush", "false"),
        ("HUSH='a hush' false", "the shell"), ("(echo hush >&2) 2>&-; exit 3", "the shell"),
        ("true hush", "true printed no token"), ("kill -9 $$; hush", "kill ended by signal 9"),
    ])
    func `a command that fails is named without its arguments`(
        line: String, message: String
    ) async throws {
        let server = try TokenServer()
        try fixture.write(
            """
            servers:
              own:
                url: \(server.url)
                tokenCommand: "\(line)"
            """)
        let finished = try await fixture.run(["files", "list", "--server", "@own"])
        #expect(finished.termination == .exited(ExitStatus.usage))
        let own = finished.errors.split(separator: "\n").last { $0.hasPrefix("kedge: ") } ?? ""
        #expect(own.contains("@own failed: \(message)"), "\(finished.errors)")
        #expect(!own.contains("hush"))
        #expect(server.credentials == [])
    }

    @Test(arguments: ["", "\n", "  \ntoken\n"])
    func `an empty token is an error, not a request with none`(text: String) async throws {
        let server = try TokenServer()
        let file = fixture.path("token")
        try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        try fixture.write(
            """
            servers:
              own:
                url: \(server.url)
                tokenFile: \(file)
            """)
        let finished = try await fixture.run(["files", "list", "--server", "@own"])
        #expect(finished.termination == .exited(ExitStatus.usage))
        #expect(finished.errors.contains("\(file) of @own has no token"), "\(finished.errors)")
        let flag = try await fixture.run(["files", "list", "--server", "@own", "--token", ""])
        #expect(flag.termination == .exited(ExitStatus.usage))
        #expect(server.credentials == [])
        // An empty variable counts as unset.
        try await fixture.run(
            ["files", "list", "--server", server.url + "/bare"], environment: ["KEDGE_TOKEN": ""])
        #expect(server.credentials.last == "")
    }

    @Test(arguments: [(0o600, false), (0o644, true)])
    func `a token file that others can read gets a warning`(
        permissions: Int, isPublic: Bool
    ) async throws {
        let server = try TokenServer()
        let file = fixture.path("token")
        try Data("own\n".utf8).write(to: URL(fileURLWithPath: file))
        try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: file)
        try fixture.write(
            """
            servers:
              own:
                url: \(server.url)
                tokenFile: \(file)
            """)
        let finished = try await fixture.run(["files", "list", "--server", "@own"])
        #expect(server.credentials.last == "Bearer own")
        #expect(finished.errors.contains("chmod 600") == isPublic, "\(finished.errors)")
    }

    @Test func `only the first line of a command's output is the token`() async throws {
        let server = try TokenServer()
        try fixture.write(
            """
            servers:
              own:
                url: \(server.url)
                tokenCommand: "echo ' own '; head -c 1000000 /dev/zero"
            """)
        try await fixture.run(["files", "list", "--server", "@own"])
        #expect(server.credentials.last == "Bearer own")
    }
}
