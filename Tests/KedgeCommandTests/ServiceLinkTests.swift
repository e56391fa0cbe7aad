import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// Links of the own service, used by curl alone.
@Suite(.timeLimit(.minutes(3)))
struct ServiceLinkTests {
    private let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    /// Runs curl and returns its output.
    private func curl(_ arguments: String...) async throws -> String {
        let finished = try await fixture.finish(
            try fixture.start(
                program: "/usr/bin/curl",
                ["--silent", "--show-error", "--fail-with-body"] + arguments))
        return finished.output
    }

    private func makeLink(
        _ members: String, _ token: String, on server: Server
    ) async throws -> CreateLinkResponse {
        let answer = try await curl(
            "--header", "Authorization: Bearer \(token)",
            "--header", "Content-Type: application/json", "--data", "{\(members)}",
            "\(server.url)/links")
        return try JSONDecoder().decode(CreateLinkResponse.self, from: Data(answer.utf8))
    }

    @Test func `curl uploads and resumes a download by links, which no log has`() async throws {
        let made = try await fixture.run([
            "token", "create", "backend", "--owner", "alice", "--scopes", "user", "--data",
            fixture.path("data"),
        ])
        let token = try #require(made.lines.first)
        let server = try await fixture.serve(["--identity-mode", "tokens"])
        let sample = try fixture.sample(mebibytes: 5)
        let put = try await makeLink(
            #""op":"put","expiresInSeconds":600,"maxFileSize":\#(sample.byteCount)"#, token,
            on: server)
        let stored = try await curl("--request", "POST", "--upload-file", sample.path, put.url)
        let file = try JSONDecoder().decode(FinalizeResponse.self, from: Data(stored.utf8))
        #expect(file.fileHashSha256 == sample.digest)

        let get = try await makeLink(
            #""op":"get","expiresInSeconds":600,"fileId":"\#(file.remoteFileId)""#, token,
            on: server)
        let copy = fixture.path("copy")
        _ = try await curl("--range", "0-1048575", "--output", copy, get.url)
        _ = try await curl("--continue-at", "-", "--output", copy, get.url)
        #expect(try SampleFile.digest(of: copy) == sample.digest)

        _ = try await curl(
            "--request", "DELETE", "--header", "Authorization: Bearer \(token)",
            "\(server.url)/links/\(get.linkId)")
        let refused = try await curl("--write-out", "%{http_code}", get.url)
        #expect(refused.contains("LINK_INVALID") && refused.hasSuffix("403"))

        server.process.signal(SIGTERM)
        _ = try await server.process.wait(within: .seconds(30))
        let log = server.process.output + server.process.errors
        #expect(!log.contains("kl1."))
        #expect(log.contains(get.linkId), "the id is logged")
    }
}
