import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// `kedge doctor`: whether a Kedge server answers, and what lies on the way to it.
///
/// Serialized, because a slow request would distort the measured latency and clock difference.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct DoctorTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private struct Line: Decodable {
        struct Proxy: Decodable {
            var variable: String
            var address: String
        }
        struct Report: Decodable {
            var address: String
            var version: String?
            var protocols: [SupportedProtocol]?
            var limits: SessionLimits?
            var trouble: String?
            var latencyMilliseconds: Double
            var clockDifferenceSeconds: Double?
            var via: String?
            var server: String?
            var proxy: Proxy?
        }
        var version: Int
        var type: String
        var subject: String?
        var result: String?
        var report: Report?
        var freeBytes: Int64?
        var freeBytesForRecords: Int64?
    }

    private func doctor(
        _ url: String, environment: [String: String] = [:]
    ) async throws -> (finished: Finished, lines: [Line]) {
        let finished = try await fixture.run(
            ["doctor", "--server", url, "--json"], environment: environment)
        let lines = try finished.lines.map {
            try JSONDecoder().decode(Line.self, from: Data($0.utf8))
        }
        return (finished, lines)
    }

    @Test func `a link is refused as the server, with the commands that take it`() async throws {
        let (finished, lines) = try await doctor(
            "http://127.0.0.1:9/files?link=kl1.a.b.c", environment: ["KEDGE_TOKEN": "unused"])
        #expect(finished.termination == .exited(2))
        #expect(finished.errors.contains("kedge upload FILE --server LINK"))
        #expect(lines.isEmpty)
    }

    @Test func `a Kedge server is reported with its version, protocols, limits and latency`()
        async throws
    {
        let server = try await fixture.serve(["--limits-max-file-size", "123456789"])
        let (finished, lines) = try await doctor(server.url)
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        let report = try #require(lines.compactMap(\.report).first)
        #expect(report.address == server.url)
        #expect(report.version == KedgeVersion.current)
        #expect(report.protocols?.map(\.name) == ["native", "tus", "resumable-upload"])
        #expect(report.protocols?.last?.versions == ["3", "4", "5", "6", "7", "8", "9"])
        #expect(report.limits?.maxFileSize == 123_456_789)
        #expect(report.trouble == nil)
        #expect(report.latencyMilliseconds > 0)
        #expect(abs(try #require(report.clockDifferenceSeconds)) < 2)
        #expect(report.proxy == nil)
        let spaces = lines.flatMap { [$0.freeBytes, $0.freeBytesForRecords] }.compactMap { $0 }
        #expect(spaces.count == 2 && spaces.allSatisfy { $0 > 0 })
        let subjects = Set(lines.compactMap(\.subject))
        let expected: Set = [
            "address", "server", "versions", "protocols", "limits", "latency", "clock difference",
            "proxy", "free space here", "free space for records", "unfinished transfers",
        ]
        #expect(expected.subtracting(subjects) == [])
        let text = try await fixture.run(["doctor", "--server", server.url])
        #expect(text.termination == .exited(0))
        #expect(text.lines.contains("server: ready"))
    }

    static let strangers: [RangeServer.Answer] = [
        RangeServer.Answer(
            status: 200, fields: ["Content-Type": "text/html"],
            body: Array("<html><title>Log in</title></html>".utf8)),
        RangeServer.Answer(
            status: 200, fields: ["Content-Type": "text/html"],
            body: [UInt8](repeating: 32, count: 3 << 20)),
        RangeServer.Answer(status: 302, fields: ["Location": "http://portal.example/login"]),
        RangeServer.Answer(status: 404), RangeServer.Answer(status: 200),
        // Many other services give this answer at this path.
        RangeServer.Answer(
            status: 200, fields: ["Content-Type": "application/json"],
            body: Array(#"{"status":"ready"}"#.utf8)),
        RangeServer.Answer(
            status: 503, fields: ["Content-Type": "application/problem+json"],
            body: Array(
                #"{"type":"about:blank","title":"no","status":503,"code":"UNAVAILABLE"}"#.utf8)),
    ]

    @Test(arguments: strangers.indices)
    func `a server other than Kedge is not reported as ready`(position: Int) async throws {
        let stranger = try RangeServer { _, _ in Self.strangers[position] }
        let (finished, lines) = try await doctor("http://127.0.0.1:\(stranger.port)")
        // The code that an upload would fail with.
        let code: ErrorCode =
            switch Self.strangers[position].status {
            case 302: .redirected
            case 503: .unavailable
            default: .notKedge
            }
        #expect(finished.termination == .exited(code.facts.exitStatus))
        #expect(lines.allSatisfy { $0.report == nil })
        let result = try #require(lines.first { $0.subject == "server" }?.result)
        #expect(result.contains(code.rawValue))
        #expect(result.contains("127.0.0.1:\(stranger.port)"))
    }

    @Test func `a wrong path on a Kedge server is reported as such`() async throws {
        let server = try await fixture.serve()
        let (finished, lines) = try await doctor("\(server.url)/prefix")
        #expect(finished.termination == .exited(ExitStatus.notFound))
        let result = try #require(lines.first { $0.subject == "server" }?.result)
        #expect(result.contains("not at this path"))
        try await expectUpload(to: "\(server.url)/prefix", endsAs: finished)
    }

    @Test func `a name that the server does not serve is reported with its setting`() async throws {
        let refusal = ProblemDocument(
            code: .badRequest, detail: "This server does not serve the name in Host.")
        let body = Array(try JSONEncoder().encode(refusal))
        let server = try RangeServer { _, _ in RangeServer.Answer(status: 400, body: body) }
        let url = "http://127.0.0.1:\(server.port)"
        let (finished, lines) = try await doctor(url)
        let result = try #require(lines.first { $0.subject == "server" }?.result)
        #expect(result.contains("allowedHosts"), "\(result)")
        try await expectUpload(to: url, endsAs: finished)
    }

    @Test func `an address of tus uploads is reported with the protocol to choose`() async throws {
        let tus = try RangeServer { _, _ in
            RangeServer.Answer(status: 404, fields: ["Tus-Resumable": "1.0.0"])
        }
        let url = "http://127.0.0.1:\(tus.port)"
        let (finished, lines) = try await doctor(url)
        #expect(finished.termination == .exited(ErrorCode.notKedge.facts.exitStatus))
        let result = try #require(lines.first { $0.subject == "server" }?.result)
        #expect(result.contains("--protocol tus"), "\(result)")
        try await expectUpload(to: url, endsAs: finished)
    }

    private func expectUpload(to url: String, endsAs finished: Finished) async throws {
        let sample = try fixture.sample(mebibytes: 1)
        let uploaded = try await fixture.run(
            ["upload", sample.path, "--server", url, "--max-wait", "0"])
        #expect(uploaded.termination == finished.termination, "\(uploaded.errors)")
    }

    /// Reports a server that answers `GET /me` with this status and body.
    private func doctor(me status: String, _ me: some Encodable) async throws -> (Finished, [Line])
    {
        let description = ServerDescription(
            protocols: [],
            limits: SessionLimits(
                minChunkSize: 1, maxChunkSize: 2, maxFileSize: 3, maxConcurrentChunks: 4))
        let ready = String(decoding: try JSONEncoder().encode(description), as: UTF8.self)
        let text = String(decoding: try JSONEncoder().encode(me), as: UTF8.self)
        let server = ScriptedServer { connection in
            while let request = connection.readRequest() {
                let isMe = request.path == "/me"
                let (head, body) = isMe ? (status, text) : ("200 OK", ready)
                connection.send(
                    "HTTP/1.1 \(head)\r\nContent-Type: application/json\r\n"
                        + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
            }
        }
        let (finished, lines) = try await doctor(
            server.url(""), environment: ["KEDGE_TOKEN": "token"])
        return (finished, lines)
    }

    @Test func `the owner for whom a token acts is reported`() async throws {
        let me = AccountDescription(
            owner: "alice", principal: "token", scopes: ["files:read"],
            limits: .init(storedBytes: 4 << 30),
            usage: .init(storedBytes: 1 << 30, reservedBytes: 0, openSessions: 2))
        let (finished, lines) = try await doctor(me: "200 OK", me)
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        #expect(lines.first { $0.subject == "token" }?.result == "accepted")
        #expect(lines.first { $0.subject == "owner" }?.result == "alice")
        #expect(lines.contains { $0.subject == "usage" })
    }

    @Test(arguments: [
        (ErrorCode.unauthenticated, "401 No", ExitStatus.denied),
        (.forbidden, "403 No", ExitStatus.denied),
        (.routeNotFound, "404 No", ExitStatus.success),
        (.unavailable, "503 No", ExitStatus.success),
    ])
    func `a refused token is reported, and an older server is none`(
        code: ErrorCode, status: String, expected: Int32
    ) async throws {
        let (finished, lines) = try await doctor(me: status, ProblemDocument(code: code))
        #expect(finished.termination == .exited(expected), "\(finished.output)")
        let result = try #require(lines.first { $0.subject == "token" }?.result)
        #expect(result.contains(code.rawValue) == (code != .routeNotFound), "\(result)")
    }

    @Test func `a proxy of the settings is reported, without its password`() async throws {
        let body = Array(
            try JSONEncoder().encode(
                ServerDescription(
                    protocols: [],
                    limits: SessionLimits(
                        minChunkSize: 1, maxChunkSize: 2, maxFileSize: 3, maxConcurrentChunks: 4))))
        let proxy = try RangeServer { _, _ in RangeServer.Answer(status: 200, body: body) }
        try fixture.write(
            """
            servers:
              work:
                url: http://files.example
                proxy: http://me:secret@127.0.0.1:\(proxy.port)
            """)
        let (finished, lines) = try await doctor("@work")
        #expect(finished.termination == .exited(0), "\(finished.output)")
        let reported = try #require(lines.compactMap(\.report).first?.proxy)
        #expect(reported.variable == "settings")
        #expect(reported.address == "http://127.0.0.1:\(proxy.port)")
        #expect(!finished.output.contains("secret"))
    }

    @Test func `a quiet report has only errors`() async throws {
        let server = try await fixture.serve()
        let quiet = try await fixture.run(["doctor", "--server", server.url, "--quiet"])
        #expect(quiet.termination == .exited(0))
        #expect(quiet.output == "" && quiet.errors == "", "\(quiet.errors)")
        let wrong = try await fixture.run(["doctor", "--server", "\(server.url)/x", "--quiet"])
        #expect(wrong.termination == .exited(ExitStatus.notFound))
        #expect(wrong.output == "" && wrong.errors != "")
    }

    @Test func `an older Kedge server without a service name is recognized`() async throws {
        let missing = ProblemDocument(code: .sessionNotFound)
        let problem = try JSONEncoder().encode(missing)
        let old = try RangeServer { head, _ in
            head.firstLine.contains("/readyz")
                ? RangeServer.Answer(status: 200, body: Array(#"{"status":"ready"}"#.utf8))
                : RangeServer.Answer(status: 404, body: Array(problem))
        }
        let (finished, lines) = try await doctor("http://127.0.0.1:\(old.port)")
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        #expect(lines.compactMap(\.report).map(\.version) == [nil])
    }

    @Test func `an unavailable Kedge server is reported with its reason`() async throws {
        var problem = ProblemDocument(code: .unavailable, detail: "The store rests.")
        problem.reason = "store"
        let body = Array(try JSONEncoder().encode(problem))
        let stopping = try RangeServer { _, _ in
            RangeServer.Answer(
                status: 503, fields: ["Via": "1.1 front"], body: body)
        }
        let (finished, lines) = try await doctor("http://127.0.0.1:\(stopping.port)")
        #expect(finished.termination == .exited(ExitStatus.network))
        let report = try #require(lines.compactMap(\.report).first)
        #expect(report.trouble == "The store rests.")
        #expect(report.via == "1.1 front")
    }

    @Test func `a wrong clock and a proxy are reported, without the proxy's password`()
        async throws
    {
        let body = Array(
            try JSONEncoder().encode(
                ServerDescription(
                    protocols: [],
                    limits: SessionLimits(
                        minChunkSize: 1, maxChunkSize: 2, maxFileSize: 3, maxConcurrentChunks: 4))))
        let proxy = try RangeServer { _, _ in
            RangeServer.Answer(
                status: 200, fields: ["Date": "Sun, 06 Nov 1994 08:49:37 GMT"], body: body)
        }
        let (finished, lines) = try await doctor(
            "http://files.example",
            environment: ["http_proxy": "http://me:secret@127.0.0.1:\(proxy.port)"])
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        let report = try #require(lines.compactMap(\.report).first)
        #expect(try #require(report.clockDifferenceSeconds) < -900_000_000)
        #expect(report.proxy?.variable == "http_proxy")
        #expect(report.proxy?.address == "http://127.0.0.1:\(proxy.port)")
        #expect(!finished.output.contains("secret"))
    }

    @Test func `an address without a server is reported as offline`() async throws {
        let (socket, port) = try LoopbackSocket.bound()
        defer { close(socket) }
        let (finished, lines) = try await doctor("http://127.0.0.1:\(port)")
        #expect(finished.termination == .exited(ExitStatus.network))
        #expect(lines.first { $0.subject == "server" }?.result?.hasPrefix("OFFLINE") == true)
    }
}
