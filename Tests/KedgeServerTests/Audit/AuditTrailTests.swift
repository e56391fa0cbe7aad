import Foundation
import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting
import Logging
import Testing

/// The requests that the audit log records.
@Suite(.timeLimit(.minutes(1))) struct AuditTrailTests {
    /// Lends a server with an audit log, and a function that reads its lines.
    private static func withAudit(
        _ mode: IdentityMode = .tokens,
        _ body: (RunningServer, @escaping @Sendable () throws -> [AuditLine]) async throws -> Void
    ) async throws {
        try await withServer {
            $0.identityMode = mode
            $0.audit = .file(Self.path(beside: $0.dataDirectory))
        } _: { server in
            let path = Self.path(beside: server.fixture.configuration.dataDirectory)
            try await body(server) { try auditLines(at: path) }
        }
    }

    private static func path(beside dataDirectory: String) -> String {
        "\(dataDirectory)-audit.jsonl"
    }

    private static func store(
        _ server: RunningServer, _ fields: [(String, String)]
    ) async throws -> String {
        let answer = try await server.ask(
            HTTPRequestBytes(
                "POST", "/files",
                fields + [
                    ("Content-Type", "text/plain"),
                    ("Content-Disposition", #"attachment; filename="a.txt""#),
                ], body: Array("text".utf8)))
        #expect(answer.status == 201)
        return try #require(answer.field("Location"))
    }

    @Test func `deletions of files and sessions are recorded, and reading is not`() async throws {
        try await Self.withAudit { server, lines in
            let token = try await server.makeToken(owner: "alice")
            let file = try await Self.store(server, token.fields)
            let created = try await server.ask(
                .createSession(.init(fileName: "a", fileSize: 1), token.fields))
            let session = try #require(created.field("Location"))
            #expect(try await server.get(file, token.fields).status == 200)
            #expect(try await server.list(token).status == 200)
            #expect(try lines().isEmpty)
            var answers: [HTTPAnswer] = []
            for path in [file, session, file] {
                answers.append(
                    try await server.ask(HTTPRequestBytes("DELETE", path, token.fields)))
            }
            let written = try lines()
            #expect(written.map(\.status) == answers.map(\.status))
            #expect(written.map(\.requestId) == answers.map { $0.field("X-Request-Id") ?? "" })
            #expect(
                written.map(\.action) == [
                    "DELETE /files/{fileId}", "DELETE /uploads/sessions/{sessionId}",
                    "DELETE /files/{fileId}",
                ])
            #expect(written.map(\.object) == [file, session, file])
            for line in written {
                #expect(line.principal == "token")
                #expect(line.owner == "alice")
                #expect(line.tokenId == token.id.text)
                #expect(line.client == "127.0.0.1")
                #expect(line.actingFor == nil)
                #expect(line.linkId == nil)
            }
        }
    }

    @Test func `refused credentials and missing scopes are recorded`() async throws {
        try await Self.withAudit { server, lines in
            let expired = try await server.makeToken(expiresIn: .seconds(1))
            server.fixture.clock.advance(by: .seconds(2))
            let reader = try await server.makeToken([.filesList], owner: "bob")
            let unknown = APIToken.generate()
            let path = "/files/\(FileID.random())"
            for token in [expired, reader, unknown] {
                _ = try await server.get(path + "?secret=1", token.fields)
            }
            // A request without a credential guesses nothing.
            #expect(try await server.get(path).status == 401)
            let written = try lines()
            #expect(written.map(\.code) == ["UNAUTHENTICATED", "FORBIDDEN", "UNAUTHENTICATED"])
            #expect(written.map(\.tokenId) == [expired, reader, unknown].map(\.id.text))
            #expect(written.map(\.principal) == [nil, "token", nil])
            #expect(written.map(\.object) == [path, path, path])
            let secrets = [expired, reader, unknown].map { String($0.text.dropFirst(17)) }
            let text = written.map { "\($0)" }.joined()
            for secret in secrets { #expect(!text.contains(secret)) }
        }
    }

    @Test func `a flood of refusals gets few lines`() async throws {
        try await Self.withAudit { server, lines in
            let connection = try await server.connect()
            let start = ContinuousClock.now
            for _ in 0..<200 {
                _ = try await connection.ask(
                    HTTPRequestBytes("GET", "/files", APIToken.generate().fields))
            }
            let seconds = Int(start.duration(to: .now).components.seconds) + 1
            let count = try lines().count
            #expect(count >= 10)
            #expect(count <= 10 + 10 * seconds)
        }
    }

    @Test func `changes for another owner are recorded with both names`() async throws {
        try await Self.withAudit { server, lines in
            let backend = try await server.makeToken(ScopeBundle.backend.scopes, owner: "backend")
            let fields = backend.fields + [("Kedge-Owner", "alice")]
            let file = try await Self.store(server, fields)
            #expect(try await server.get(file, fields).status == 200)
            #expect(try await server.get("/files", fields).status == 200)
            #expect(try await server.ask(HTTPRequestBytes("DELETE", file, fields)).status == 204)
            let written = try lines()
            #expect(written.map(\.action) == ["POST /files", "DELETE /files/{fileId}"])
            for line in written {
                #expect(line.owner == "backend")
                #expect(line.actingFor == "alice")
                #expect(line.fileId.map { file.hasSuffix($0) } == true)
            }
        }
    }

    @Test func `the method that replaces another one is recorded`() async throws {
        try await Self.withAudit { server, lines in
            let token = try await server.makeToken()
            let answer = try await server.ask(
                .tus("POST", "/tus/", token.fields + [("Upload-Length", "5")]))
            let path = try #require(answer.tusPath)
            let deleted = try await server.ask(
                .tus("POST", path, token.fields + [("X-HTTP-Method-Override", "DELETE")]))
            #expect(deleted.status == 204)
            let line = try #require(try lines().first)
            #expect(line.action == "DELETE /tus/{sessionId}")
            #expect(line.sessionId.map { path.hasSuffix($0) } == true)
        }
    }

    @Test(arguments: [true, false])
    func `the first read through a link is recorded at each address of the file`(
        isTus: Bool
    ) async throws {
        try await Self.withAudit { server, lines in
            let token = try await server.makeToken(owner: "alice")
            let created = try await server.ask(
                .tus("POST", "/tus/", [("Upload-Length", "1")] + token.fields))
            let path = try #require(created.tusPath)
            let last = try await server.ask(.tusPatch(path, at: 0, [1], token.fields))
            let id = try #require(last.field("Content-Location")?.split(separator: "/").last)
            let file = try #require(FileID(id))
            let link = try await server.makeGetLink(file)
            let address = "\(isTus ? path : "/files/\(file)")?link=\(try linkText(link.url))"
            for _ in 0..<2 { #expect(try await server.get(address).status == 200) }
            let reads = try lines().filter { $0.action.hasPrefix("GET ") }
            #expect(reads.map(\.linkId) == [link.linkId])
            #expect(reads.map(\.fileId) == [file.text])
        }
    }

    @Test(
        arguments: [
            (#"{"isBlocked":true}"#, "block"), (#"{"isBlocked":false}"#, "unblock"),
            (#"{"limits":{"maxFileBytes":5}}"#, "limits"),
            (#"{"limits":{},"isBlocked":true}"#, "limits,block"), ("{}", nil),
        ] as [(String, String?)])
    func `the line of a changed owner names the changes`(
        body: String, change: String?
    ) async throws {
        try await Self.withAudit { server, lines in
            let admin = try await server.makeToken([.admin])
            _ = try await server.ask(.json("PUT", "/owners/bob", body, admin.fields))
            let line = try #require(try lines().first)
            #expect(line.target == "owner bob")
            #expect(line.change == change)
        }
    }

    @Test func `without identities the anonymous owner is recorded`() async throws {
        try await Self.withAudit(.anonymous) { server, lines in
            let file = try await Self.store(server, [])
            _ = try await server.ask(HTTPRequestBytes("DELETE", file))
            let line = try #require(try lines().first)
            #expect(line.principal == "anonymous")
            #expect(line.owner == "anonymous")
        }
    }

    @Test func `a full disk of the log fails no request`() async throws {
        try await withServer {
            $0.audit = .file("/dev/full")
        } _: { server in
            let file = try await Self.store(server, [])
            let answer = try await server.ask(HTTPRequestBytes("DELETE", file))
            #expect(answer.status == 204)
            #expect(server.fixture.log.lines.contains { $0.level == .error })
        }
    }

    @Test func `a file that cannot be opened is refused at the start`() async throws {
        await #expect(throws: ConfigurationError.self) {
            try await withServer {
                $0.audit = .file("/nowhere/audit.jsonl")
            } _: { _ in
            }
        }
    }

    @Test func `long paths are cut`() async throws {
        try await Self.withAudit { server, lines in
            let token = APIToken.generate()
            let path = "/files/" + String(repeating: "a", count: 4000)
            _ = try await server.get(path, token.fields)
            #expect(try lines().map(\.object.count) == [256])
        }
    }
}
