import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// Keys of links, from the first start of a service to a revoked key.
@Suite(.timeLimit(.minutes(3)))
struct ServiceKeyTests {
    private struct Line: Decodable {
        var version: Int
        var keyId: String
        var masterFingerprint: String
        var signsUntil: String?
        var verifiesUntil: String?
    }

    private let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private var data: [String] { ["--data", fixture.path("data")] }
    private var keyFile: String { fixture.path("data/master.key") }

    /// Starts a service with tokens, which makes its first key, and stops it.
    private func startOnce() async throws {
        let server = try await fixture.serve(["--identity-mode", "tokens"])
        server.process.signal(SIGTERM)
        _ = try await server.process.wait(within: .seconds(30))
    }

    private func list() async throws -> [Line] {
        let listed = try await fixture.run(["key", "list", "--json"] + data)
        #expect(listed.termination == .exited(0), "\(listed.errors)")
        return try listed.lines.map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
    }

    @Test func `a service makes its key once, and none without identities`() async throws {
        let anonymous = try await fixture.serve()
        anonymous.process.signal(SIGTERM)
        _ = try await anonymous.process.wait(within: .seconds(30))
        #expect(!FileManager.default.fileExists(atPath: keyFile))
        try await startOnce()
        #expect(TemporaryDirectory.mode(of: keyFile) == 0o600)
        let first = try await list()
        #expect(first.count == 1)
        #expect(first.first?.version == 1)
        #expect(first.first?.signsUntil == nil)
        try await startOnce()
        #expect(try await list().map(\.keyId) == first.map(\.keyId))
    }

    @Test func `keys are rotated, listed and revoked`() async throws {
        try await startOnce()
        let first = try #require(try await list().first)
        let rotated = try await fixture.run(
            ["key", "rotate", "--overlap", "7d", "--json"] + data)
        #expect(rotated.termination == .exited(0), "\(rotated.errors)")
        let new = try JSONDecoder().decode(Line.self, from: Data(rotated.output.utf8))
        #expect(new.masterFingerprint == first.masterFingerprint)
        #expect(new.verifiesUntil == nil)
        let keys = try await list()
        #expect(keys.map(\.keyId) == [new.keyId, first.keyId])
        #expect(keys[1].signsUntil != nil)
        #expect(keys[1].verifiesUntil != nil)

        for key in keys {
            let revoked = try await fixture.run(["key", "revoke", key.keyId] + data)
            #expect(revoked.termination == .exited(0), "\(revoked.errors)")
        }
        #expect(try await list().allSatisfy { $0.verifiesUntil != nil })
        let table = try await fixture.run(["key", "list"] + data)
        #expect(table.lines.count == 3)
        let unknown = try await fixture.run(["key", "revoke", "unknown1"] + data)
        #expect(unknown.termination == .exited(ExitStatus.notFound))
        // The next start makes a key that signs.
        try await startOnce()
        let after = try await list()
        #expect(after.count == 3)
        #expect(after.first?.verifiesUntil == nil)
    }

    @Test func `a key file that was lost, replaced or opened to others prevents the start`()
        async throws
    {
        try await startOnce()
        let serve = ["serve", "--port", "0", "--identity-mode", "tokens"] + data
        let moved = fixture.path("moved.key")
        try FileManager.default.moveItem(atPath: keyFile, toPath: moved)
        let lost = try await fixture.run(serve, within: .seconds(20))
        #expect(lost.termination == .exited(ExitStatus.configuration), "\(lost.errors)")
        #expect(lost.errors.contains("secrets.masterKeyFile"))
        #expect(!FileManager.default.fileExists(atPath: keyFile))

        let other = fixture.path("other.key")
        let text = String(repeating: "A", count: 43) + "\n"
        #expect(
            FileManager.default.createFile(
                atPath: other, contents: Data(text.utf8),
                attributes: [.posixPermissions: 0o600]))
        let named = ["--secrets-master-key-file", other]
        let foreign = try await fixture.run(serve + named, within: .seconds(20))
        #expect(foreign.termination == .exited(ExitStatus.configuration), "\(foreign.errors)")
        #expect(foreign.errors.contains("secrets.masterKeyFile"))
        #expect(!foreign.errors.contains(text.prefix(20)))
        let rotated = try await fixture.run(["key", "rotate"] + named + data)
        #expect(rotated.termination == .exited(ExitStatus.configuration), "\(rotated.errors)")

        try FileManager.default.setAttributes(
            [.posixPermissions: 0o640], ofItemAtPath: moved)
        let open = try await fixture.run(
            serve + ["--secrets-master-key-file", moved], within: .seconds(20))
        #expect(open.termination == .exited(ExitStatus.configuration), "\(open.errors)")
    }

    @Test func `a fleet names its master key before anything is opened`() async throws {
        let finished = try await fixture.run(
            [
                "serve", "--port", "0", "--identity-mode", "tokens", "--metadata",
                "postgresql://127.0.0.1:1/kedge", "--bytes", "s3://bucket",
            ], within: .seconds(20))
        #expect(finished.termination == .exited(ExitStatus.configuration), "\(finished.errors)")
        #expect(finished.errors.contains("secrets.masterKeyFile"))
    }

    @Test(arguments: [
        ["rotate", "--overlap", "soon"], ["rotate", "--overlap", "-1"], ["revoke", "a b"],
        ["revoke", ""],
    ])
    func `wrong values are refused before anything is opened`(arguments: [String]) async throws {
        let finished = try await fixture.run(["key"] + arguments + data)
        #expect(finished.termination == .exited(ExitStatus.usage), "\(finished.errors)")
        #expect(fixture.names(in: fixture.path("data")) == [])
    }

    @Test func `keys of a running service with SQLite are busy`() async throws {
        let server = try await fixture.serve(["--identity-mode", "tokens"])
        let early = try await fixture.run(["key", "rotate"] + data)
        #expect(early.termination == .exited(ExitStatus.busy), "\(early.errors)")
        server.process.end()
    }
}
