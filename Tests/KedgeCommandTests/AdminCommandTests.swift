import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// `kedge token` and `kedge admin` with a running service on SQLite.
@Suite(.timeLimit(.minutes(3)))
struct AdminCommandTests {
    private let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private struct Owner: Decodable {
        struct Limits: Decodable {
            var maxStoredBytes: Int64?
            var maxOpenSessions: Int64?
            var maxFileBytes: Int64?
        }

        var version: Int
        var owner: String
        var isBlocked: Bool
        var limits: Limits
        var storedBytes: Int64
    }

    private var data: [String] { ["--data", fixture.path("data")] }

    private func withService<Result>(
        _ body: (Server) async throws -> Result
    ) async throws -> Result {
        let server = try await fixture.serve(["--identity-mode", "tokens"])
        let result = try await body(server)
        server.process.signal(SIGTERM)
        _ = try await server.process.wait(within: .seconds(30))
        return result
    }

    private func makeToken(
        _ owner: String, _ scopes: String, _ place: [String], environment: [String: String] = [:]
    ) async throws -> String {
        let made = try await fixture.run(
            ["token", "create", "x", "--owner", owner, "--scopes", scopes] + place,
            environment: environment)
        #expect(made.termination == .exited(0), "\(made.errors)")
        return try #require(made.lines.first)
    }

    private func owners(_ words: [String], _ place: [String]) async throws -> [Owner] {
        let finished = try await fixture.run(["admin", "owners"] + words + ["--json"] + place)
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        return try finished.lines.map { try JSONDecoder().decode(Owner.self, from: Data($0.utf8)) }
    }

    @Test func `a running service makes its first token`() async throws {
        try await withService { server in
            let token = try await makeToken("alice", "user", data)
            let listed = try await fixture.run(
                ["files", "list", "--server", server.url], environment: ["KEDGE_TOKEN": token])
            #expect(listed.termination == .exited(0), "\(listed.errors)")
            let tokens = try await fixture.run(["token", "list"] + data)
            #expect(tokens.lines.count == 2)
            #expect(!tokens.output.contains(token.dropFirst(17)))
            #expect(!(server.process.output + server.process.errors).contains(token.dropFirst(17)))
        }
    }

    @Test func `an administrator manages tokens of a server`() async throws {
        try await withService { server in
            let admin = try await makeToken("ops", "admin", data)
            let place = ["--server", server.url]
            let credential = ["KEDGE_TOKEN": admin]
            let token = try await makeToken("alice", "user", place, environment: credential)
            let denied = try await fixture.run(
                ["token", "list"] + place, environment: ["KEDGE_TOKEN": token])
            #expect(denied.termination == .exited(ExitStatus.denied), "\(denied.errors)")
            let id = String(token.dropFirst(4).prefix(12))
            for _ in 0..<2 {
                let revoked = try await fixture.run(
                    ["token", "revoke", id] + place, environment: credential)
                #expect(revoked.termination == .exited(0), "\(revoked.errors)")
            }
            let refused = try await fixture.run(
                ["files", "list"] + place, environment: ["KEDGE_TOKEN": token])
            #expect(refused.termination == .exited(ExitStatus.denied), "\(refused.errors)")
            let unknown = try await fixture.run(
                ["token", "revoke", "000000000000"] + place, environment: credential)
            #expect(unknown.termination == .exited(ExitStatus.notFound), "\(unknown.errors)")
        }
    }

    @Test(arguments: [false, true])
    func `limits are set one by one, and blocks begin and end`(isRunning: Bool) async throws {
        _ = try await makeToken("alice", "user", data)
        func check() async throws {
            let unknown = try await fixture.run(["admin", "owners", "show", "bob"] + data)
            #expect(unknown.termination == .exited(ExitStatus.notFound), "\(unknown.errors)")
            _ = try await owners(["set-quota", "bob", "--stored-bytes", "2G"], data)
            let set = try await owners(
                ["set-quota", "bob", "--open-sessions", "none", "--file-bytes", "7"], data)
            #expect(set.first?.limits.maxStoredBytes == 2 << 30)
            #expect(set.first?.limits.maxOpenSessions == 0)
            #expect(set.first?.limits.maxFileBytes == 7)
            _ = try await owners(["set-quota", "bob", "--stored-bytes", "default"], data)
            #expect(try await owners(["block", "bob"], data).first?.isBlocked == true)
            let shown = try #require(try await owners(["show", "bob"], data).first)
            #expect(shown.version == 1)
            #expect(shown.isBlocked)
            #expect(shown.limits.maxStoredBytes == nil)
            #expect(shown.limits.maxFileBytes == 7)
            #expect(try await owners(["unblock", "bob"], data).first?.isBlocked == false)
            #expect(try await owners(["list"], data).contains { $0.owner == "bob" })
            let table = try await fixture.run(["admin", "owners", "list"] + data)
            #expect(table.output.contains("bob"))
        }
        if isRunning {
            try await withService { _ in try await check() }
        } else {
            try await check()
        }
    }

    @Test(arguments: [
        ["set-quota", "bob"], ["set-quota", "bob", "--stored-bytes", "0"],
        ["set-quota", "bob", "--stored-bytes", "many"],
        ["set-quota", "bob", "--open-sessions", "-1"], ["set-quota", "", "--file-bytes", "1"],
        ["block", ""], ["show", "jürgen"], ["list", "--server", "http://127.0.0.1:1"],
    ])
    func `wrong words are refused before anything is opened`(words: [String]) async throws {
        let finished = try await fixture.run(["admin", "owners"] + words + data)
        #expect(finished.termination == .exited(ExitStatus.usage), "\(finished.errors)")
        #expect(fixture.names(in: fixture.path("data")) == [])
    }

    @Test func `a service that does not answer at its socket is busy`() async throws {
        try await withService { _ in
            try FileManager.default.removeItem(atPath: fixture.path("data/admin.sock"))
            let listed = try await fixture.run(["token", "list"] + data)
            #expect(listed.termination == .exited(ExitStatus.busy), "\(listed.errors)")
        }
    }

    @Test func `the socket of a killed service does not stop the commands`() async throws {
        let server = try await fixture.serve(["--identity-mode", "tokens"])
        server.process.signal(SIGKILL)
        _ = try await server.process.wait(within: .seconds(30))
        #expect(fixture.names(in: fixture.path("data")).contains("admin.sock"))
        let token = try await makeToken("alice", "user", data)
        #expect(token.hasPrefix("kdg_"))
    }

    @Test func `the path of the data directory may be too long for a socket`() async throws {
        let name = String(repeating: "x", count: 200)
        let long = fixture.path(name)
        let server = try await fixture.serve(data: name, ["--identity-mode", "tokens"])
        let token = try await makeToken("alice", "user", ["--data", long])
        let listed = try await fixture.run(
            ["files", "list", "--server", server.url], environment: ["KEDGE_TOKEN": token])
        #expect(listed.termination == .exited(0), "\(listed.errors)")
        server.process.signal(SIGTERM)
        _ = try await server.process.wait(within: .seconds(30))
    }
}
