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
}
