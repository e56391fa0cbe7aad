import Foundation
import Testing

/// Tokens, and passwords and queries of URLs: the command never prints them, and keeps none after
/// the end of the transfer.
@Suite(.timeLimit(.minutes(2)))
struct SecretTests {
    private let fixture: CommandEnvironment
    private static let token = "token-of-hush"
    private static let secrets = ["token-of-hush", "word-of-hush", "key-of-hush", "mark-of-hush"]

    init() throws { fixture = try CommandEnvironment() }

    /// Secrets in the client's stored files, with the names of the files.
    private func kept() throws -> [String] {
        let directory = fixture.path("state")
        return try FileManager.default.subpathsOfDirectory(atPath: directory).flatMap { name in
            let bytes = FileManager.default.contents(atPath: "\(directory)/\(name)") ?? Data()
            let found = Self.secrets.filter { bytes.range(of: Data($0.utf8)) != nil }
            return found.map { "\(name): \($0)" }
        }
    }

    private func expectSilent(
        _ finished: Finished, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let text = finished.output + finished.errors
        let told = Self.secrets.filter { text.contains($0) }
        #expect(told == [], "\(text)", sourceLocation: sourceLocation)
    }

    private func run(_ arguments: [String]) async throws -> Finished {
        try await fixture.run(arguments, environment: ["KEDGE_TOKEN": Self.token])
    }

    private func secretURL(_ server: Server, _ path: String) -> String {
        "http://user:word-of-hush@127.0.0.1:\(server.port)\(path)?key=key-of-hush#mark-of-hush"
    }

    @Test(arguments: [["--json"], ["--json", "--verbose"], ["--verbose"]])
    func `a successful run prints and keeps no secret`(flags: [String]) async throws {
        let server = try await fixture.serve()
        let sample = try fixture.sample(mebibytes: 5)
        let uploaded = try await run(["upload", sample.path, "--server", server.url] + flags)
        expectSilent(uploaded)
        #expect(uploaded.termination == .exited(0))
        let id = try await fixture.upload(sample, to: server.url)
        let url = secretURL(server, "/files/\(id)")
        let downloaded = try await run(["download", url, "-o", fixture.path("copy")] + flags)
        expectSilent(downloaded)
        #expect(downloaded.termination == .exited(0), "\(downloaded.errors)")
        #expect(try SampleFile.digest(of: fixture.path("copy")) == sample.digest)
        #expect(try kept() == [])
    }

    @Test(arguments: [["--json"], ["--json", "--verbose"], ["--verbose"]])
    func `a failed run prints no secret, and a cancel removes it from the records`(flags: [String])
        async throws
    {
        let server = try await fixture.serve()
        let url = secretURL(server, "/files/\(String(repeating: "0", count: 32))")
        let failed = try await run(["download", url, "-o", fixture.path("copy")] + flags)
        #expect(failed.termination != .exited(0))
        expectSilent(failed)
        let refused = try await run(["download", url, "-o", fixture.path("none/copy")] + flags)
        #expect(refused.termination != .exited(0))
        expectSilent(refused)
        for command in [["list"], ["list", "--json"]] {
            expectSilent(try await run(["transfers"] + command))
        }
        // The records keep the secrets, because the same command needs them again.
        let transfer = try #require(try await fixture.transfers().first?.transferId)
        expectSilent(try await run(["transfers", "diagnose", transfer]))
        #expect(try kept() != [])
        #expect(try await run(["transfers", "cancel", transfer]).termination == .exited(0))
        #expect(try kept() == [])
    }
}
