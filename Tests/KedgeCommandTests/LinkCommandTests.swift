import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// `kedge link`: which requests it makes, and what it prints.
@Suite(.timeLimit(.minutes(2)))
struct LinkCommandTests {
    private let fixture: CommandEnvironment
    private let server: ScriptedServer
    private let seen = Shared<[HTTPMessage]>([])
    private static let made = CreateLinkResponse(
        linkId: "0123456789ab", url: "https://x.test/files?link=kl1.a.b.c",
        tusUrl: "https://x.test/tus/?link=kl1.a.b.c",
        expiresAt: Timestamp(millisecondsSinceEpoch: 4_000_000_000_000))
    private static let id = String(repeating: "ab", count: 16)

    init() throws {
        fixture = try CommandEnvironment()
        server = try ScriptedServer()
        let body = String(decoding: try JSONEncoder().encode(Self.made), as: UTF8.self)
        let seen = seen
        server.start { connection in
            while let request = connection.readRequest() {
                seen.update { $0.append(request) }
                let status = request.method == "DELETE" ? "204 No Content" : "201 Created"
                let text = request.method == "DELETE" ? "" : body
                connection.send(
                    "HTTP/1.1 \(status)\r\nContent-Type: application/json\r\n"
                        + "Content-Length: \(text.utf8.count)\r\n\r\n\(text)")
            }
        }
    }

    private func link(_ arguments: [String]) async throws -> Finished {
        try await fixture.run(
            ["link"] + arguments + ["--server", server.url("")],
            environment: ["KEDGE_TOKEN": "token"])
    }

    private func sent() throws -> CreateLinkRequest {
        let request = try #require(seen.value.last)
        #expect(request.method == "POST")
        #expect(request.path == "/links")
        #expect(request["Authorization"] == "Bearer token")
        return try JSONDecoder().decode(CreateLinkRequest.self, from: Data(request.body))
    }

    @Test func `a link for an upload has the limits of the options`() async throws {
        let finished = try await link([
            "upload", "--max-size", "2M", "--type", "video/*", "--type", "image/png", "--name",
            "a.mp4", "--uses", "3", "--expires", "7d", "--origin", "https://page.test",
            "--metadata", "task=812",
        ])
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        #expect(finished.lines == [Self.made.url])
        #expect(finished.errors.contains(Self.made.linkId))
        var expected = CreateLinkRequest(op: .put, expiresInSeconds: 7 * 86_400)
        expected.maxFileSize = 2 << 20
        expected.mimeTypes = ["video/*", "image/png"]
        expected.fileName = "a.mp4"
        expected.uses = 3
        expected.origins = ["https://page.test"]
        expected.metadata = ["task": "812"]
        #expect(try sent() == expected)
    }

    @Test func `a link for an upload has no limit but a day without options`() async throws {
        let finished = try await link(["upload", "--tus"])
        #expect(finished.lines.first == Self.made.tusUrl)
        #expect(try sent() == CreateLinkRequest(op: .put, expiresInSeconds: 86_400))
    }

    @Test func `a link for a download or a session names it`() async throws {
        let shown = try await link(["download", Self.id, "--inline", "--name", "b.mp4"])
        #expect(shown.lines == [Self.made.url])
        var download = CreateLinkRequest(op: .get, expiresInSeconds: 86_400)
        download.fileId = FileID(Self.id)
        download.disposition = .inline
        download.fileName = "b.mp4"
        #expect(try sent() == download)
        _ = try await link(["session", Self.id])
        var session = CreateLinkRequest(op: .session, expiresInSeconds: 86_400)
        session.sessionId = SessionID(Self.id)
        #expect(try sent() == session)
    }

    @Test func `an object with all addresses is printed on request`() async throws {
        let finished = try await link(["upload", "--json"])
        let line = try #require(finished.lines.first)
        #expect(
            try JSONDecoder().decode(CreateLinkResponse.self, from: Data(line.utf8)) == Self.made)
        #expect(finished.errors == "")
    }

    @Test func `each id of a revoked link is sent`() async throws {
        let finished = try await link(["revoke", "0123456789ab", "x/../y"])
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        #expect(seen.value.map(\.method) == ["DELETE", "DELETE"])
        #expect(seen.value.map(\.path) == ["/links/0123456789ab", "/links/x%2F..%2Fy"])
    }

    @Test(arguments: [
        ["upload", "--expires", "soon"], ["upload", "--expires", "0"], ["upload", "--uses", "0"],
        ["download", "x"], ["revoke"],
    ])
    func `wrong values are refused before a link is made`(arguments: [String]) async throws {
        let finished = try await link(arguments)
        #expect(finished.termination == .exited(ExitStatus.usage), "\(finished.errors)")
        #expect(seen.value.isEmpty)
    }
}
