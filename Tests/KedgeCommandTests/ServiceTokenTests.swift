import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// API tokens of the own service, from `kedge token create` to a revoked token.
@Suite(.timeLimit(.minutes(3)))
struct ServiceTokenTests {
    private let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private var data: [String] { ["--data", fixture.path("data")] }

    private func serve() async throws -> Server {
        try await fixture.serve(["--identity-mode", "tokens"])
    }

    private func stop(_ server: Server) async throws {
        server.process.signal(SIGTERM)
        _ = try await server.process.wait(within: .seconds(30))
    }

    /// Makes a token; the output is the token alone.
    private func makeToken(_ scopes: String = "user", _ more: [String] = []) async throws -> String
    {
        let made = try await fixture.run(
            ["token", "create", "laptop", "--owner", "alice", "--scopes", scopes] + data + more)
        #expect(made.termination == .exited(0), "\(made.errors)")
        #expect(made.lines.count == 1)
        let token = try #require(made.lines.first)
        #expect(token.hasPrefix("kdg_"))
        #expect(!made.errors.contains(token))
        return token
    }

    /// The id in the text of a token.
    private func id(of token: String) -> String { String(token.dropFirst(4).prefix(12)) }

    @Test func `a login saves a token that may only upload`() async throws {
        let token = try await makeToken("uploader")
        let server = try await serve()
        let saved = try await fixture.shell(
            "printf '%s\\n' \"$TOKEN\" | \"$K\" login own '\(server.url)'",
            environment: ["TOKEN": token])
        #expect(saved.termination == .exited(0), "\(saved.errors)")
        try await stop(server)
    }

    @Test func `a service with tokens serves their holders alone, until they are revoked`()
        async throws
    {
        let token = try await makeToken()
        let server = try await serve()
        let sample = try fixture.sample(mebibytes: 5)
        let credential = ["KEDGE_TOKEN": token]
        let uploaded = try await fixture.run(
            ["upload", sample.path, "--server", server.url, "--json"], environment: credential)
        try uploaded.expectCompleted(sample)
        let file = try #require(try uploaded.result.remoteFileId)
        let copy = fixture.path("copy")
        let downloaded = try await fixture.run(
            ["download", file, "-o", copy, "--server", server.url], environment: credential)
        #expect(downloaded.termination == .exited(0), "\(downloaded.errors)")
        #expect(try SampleFile.digest(of: copy) == sample.digest)

        for wrong in ["", "kdg_wrong", String(token.reversed())] {
            let refused = try await fixture.run(
                ["files", "list", "--server", server.url], environment: ["KEDGE_TOKEN": wrong])
            #expect(refused.termination == .exited(ExitStatus.denied), "\(refused.errors)")
        }

        // The running service revokes it, and refuses it from then on.
        let revoked = try await fixture.run(["token", "revoke", id(of: token)] + data)
        #expect(revoked.termination == .exited(0), "\(revoked.errors)")
        let refused = try await fixture.run(
            ["files", "list", "--server", server.url], environment: credential)
        #expect(refused.termination == .exited(ExitStatus.denied), "\(refused.errors)")
        try await stop(server)

        // The id is no secret; the rest is.
        let secret = String(token.dropFirst(17))
        for finished in [uploaded, downloaded, revoked, refused] {
            #expect(!(finished.output + finished.errors).contains(secret))
        }
        #expect(!(server.process.output + server.process.errors).contains(secret))
        #expect(server.process.errors.contains(id(of: token)), "the id is logged")
    }

    @Test func `tokens are listed with their state and without a secret`() async throws {
        let tokens = [try await makeToken(), try await makeToken("reader", ["--expires", "90d"])]
        _ = try await fixture.run(["token", "revoke", id(of: tokens[0])] + data)
        struct Line: Decodable {
            var version: Int
            var tokenId: String
            var owner: String
            var scopes: [String]
            var expiresAt: String?
            var revokedAt: String?
            var token: String?
        }
        let listed = try await fixture.run(["token", "list", "--json"] + data)
        let lines = try listed.lines.map {
            try JSONDecoder().decode(Line.self, from: Data($0.utf8))
        }
        #expect(Set(lines.map(\.tokenId)) == Set(tokens.map { id(of: $0) }))
        let second = try #require(lines.first { $0.tokenId == id(of: tokens[1]) })
        #expect(second.version == 1)
        #expect(second.owner == "alice")
        #expect(second.scopes == ["files:list", "files:read"])
        #expect(second.expiresAt != nil)
        #expect(second.revokedAt == nil)
        #expect(lines.first { $0.tokenId == id(of: tokens[0]) }?.revokedAt != nil)
        #expect(lines.allSatisfy { $0.token == nil })
        let table = try await fixture.run(["token", "list", "--owner", "alice"] + data)
        #expect(table.lines.count == 3)
        for token in tokens { #expect(!table.output.contains(token.dropFirst(17))) }
        let none = try await fixture.run(["token", "list", "--owner", "bob"] + data)
        #expect(none.output == "")
        #expect(none.termination == .exited(0))
    }

    @Test func `an object with the token is written on request`() async throws {
        struct Line: Decodable {
            var version: Int
            var tokenId: String
            var token: String
        }
        let made = try await fixture.run(
            ["token", "create", "ci", "--owner", "ci", "--scopes", "uploader", "--json"] + data)
        let line = try JSONDecoder().decode(Line.self, from: Data(made.output.utf8))
        #expect(id(of: line.token) == line.tokenId)
        #expect(!made.errors.contains(line.token))
    }

    @Test(arguments: [
        ["create", "x", "--owner", "alice", "--scopes", "everything"],
        ["create", "x", "--owner", "alice", "--scopes", ""],
        ["create", "x", "--owner", "", "--scopes", "user"],
        ["create", "x", "--owner", "jürgen", "--scopes", "user"],
        ["create", "", "--owner", "alice", "--scopes", "user"],
        ["create", "x", "--owner", "alice", "--scopes", "user", "--expires", "0"],
        ["create", "x", "--owner", "alice", "--scopes", "user", "--expires", "soon"],
        ["revoke", "x"], ["list", "--limit", "0"], ["list", "--limit", "10001"],
        ["list", "--server", "http://127.0.0.1:1"],
    ])
    func `wrong values are refused before anything is opened`(arguments: [String]) async throws {
        let finished = try await fixture.run(["token"] + arguments + data)
        #expect(finished.termination == .exited(ExitStatus.usage), "\(finished.errors)")
        #expect(finished.output == "")
        #expect(fixture.names(in: fixture.path("data")) == [])
    }

    @Test func `an unknown token and a directory without a database are named`() async throws {
        let absent = try await fixture.run(["token", "list"] + data)
        #expect(absent.termination == .exited(ExitStatus.failure))
        #expect(fixture.names(in: fixture.path("data")) == [])
        _ = try await makeToken()
        let unknown = try await fixture.run(["token", "revoke", "000000000000"] + data)
        #expect(unknown.termination == .exited(ExitStatus.notFound))
        let unnamed = try await fixture.run(["token", "list"])
        #expect(unnamed.termination == .exited(ExitStatus.usage))
    }
}
