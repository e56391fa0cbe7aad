import KedgeModel
import KedgeServer
import KedgeTesting
import Logging
import Testing

/// CORS for the origins that the settings allow.
@Suite(.timeLimit(.minutes(1))) struct CORSTests {
    private static let page = "https://app.example"

    private static func withPages<Result: Sendable>(
        of origins: String, _ body: (RunningServer) async throws -> Result
    ) async throws -> Result {
        try await withServer {
            $0.cors = CORSPolicy(text: origins) ?? .sameOrigin
        } _: {
            try await body($0)
        }
    }

    @Test(arguments: ["/tus/", "/uploads/sessions", "/files", "/tus/x", "/files/x"])
    func `a preflight from an allowed origin gets the allowed methods and headers`(target: String)
        async throws
    {
        try await Self.withPages(of: Self.page) { server in
            let answer = try await server.ask(
                HTTPRequestBytes(
                    "OPTIONS", target,
                    [
                        ("Origin", Self.page), ("Access-Control-Request-Method", "PATCH"),
                        ("Access-Control-Request-Headers", "tus-resumable,upload-offset"),
                        ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "cors"),
                    ]))
            #expect(answer.status == 204)
            #expect(answer.field("Access-Control-Allow-Origin") == Self.page)
            #expect(answer.field("Vary")?.contains("Origin") == true)
            #expect(answer.field("Access-Control-Allow-Credentials") == nil)
            let fields = answer.field("Access-Control-Allow-Headers")?.lowercased() ?? ""
            for name in ["tus-resumable", "upload-offset", "x-chunk-hash", "content-type"] {
                #expect(fields.contains(name))
            }
            #expect(answer.field("Access-Control-Allow-Methods")?.isEmpty == false)
            #expect(answer.field("Access-Control-Max-Age").flatMap { Int($0) } ?? 0 > 0)
        }
    }

    @Test func `a preflight for a tus upload allows appending and deleting`() async throws {
        try await Self.withPages(of: Self.page) { server in
            let answer = try await server.ask(
                HTTPRequestBytes(
                    "OPTIONS", "/tus/x",
                    [("Origin", Self.page), ("Access-Control-Request-Method", "PATCH")]))
            let methods = (answer.field("Access-Control-Allow-Methods") ?? "").split(separator: ",")
                .map { $0.filter { $0 != " " } }
            #expect(Set(methods) == ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH"])
        }
    }

    @Test func `answers to an allowed origin expose their headers, errors included`() async throws {
        try await Self.withPages(of: "http://localhost:3000, \(Self.page)") { server in
            let fields = [("Origin", Self.page), ("Sec-Fetch-Site", "cross-site")]
            let created = try await server.ask(
                .tus("POST", "/tus/", fields + [("Upload-Length", "3")]))
            #expect(created.status == 201)
            let missing = try await server.ask(.tus("GET", "/tus/x", fields))
            try expectProblem(missing, .sessionNotFound)
            for answer in [created, missing] {
                #expect(answer.field("Access-Control-Allow-Origin") == Self.page)
                let exposed = answer.field("Access-Control-Expose-Headers") ?? ""
                let names = Set(exposed.split(separator: ",").map { $0.filter { $0 != " " } })
                #expect(
                    names.isSuperset(of: [
                        "Location", "Upload-Offset", "Tus-Resumable", "ETag", "Content-Location",
                        "Accept-Patch", "Allow",
                    ]))
            }
        }
    }

    @Test(arguments: [
        "http://app.example", "https://app.example:8443", "https://evil.example", "null",
        "https://app.example.evil.example", "https://sub.app.example",
    ])
    func `a request from an origin that is not allowed is refused`(origin: String) async throws {
        try await Self.withPages(of: Self.page) { server in
            for request in [
                HTTPRequestBytes.tus("POST", "/tus/", [("Upload-Length", "3")]),
                HTTPRequestBytes("OPTIONS", "/tus/", [("Access-Control-Request-Method", "POST")]),
            ] {
                let answer = try await server.ask(request.with([("Origin", origin)]))
                try expectProblem(answer, .badRequest)
                #expect(answer.field("Access-Control-Allow-Origin") == nil)
            }
        }
    }

    @Test func `a star allows every origin and sends Access-Control-Allow-Origin`() async throws {
        try await Self.withPages(of: "*") { server in
            for origin in [Self.page, "null", "http://evil.example"] {
                let answer = try await server.get("/files", [("Origin", origin)])
                #expect(answer.status == 200)
                #expect(answer.field("Access-Control-Allow-Origin") == "*")
                #expect(answer.field("Access-Control-Allow-Credentials") == nil)
            }
            // The check of `Host` still applies, against DNS rebinding.
            let connection = try await server.connect()
            try await connection.send(
                "GET /files HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n\r\n")
            try expectProblem(try await connection.answer(), .badRequest)
        }
    }

    /// Fields of a browser that follows a link, which has no `Origin`.
    private static let link = [
        ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Dest", "document"),
    ]

    struct Link: Sendable {
        var method = "GET"
        var fields: [(String, String)]
        var isAnswered: Bool
    }

    @Test(arguments: [
        Link(fields: [("Referer", "https://app.example/")], isAnswered: true),
        Link(fields: [("Referer", "https://app.example:443/x?y=z")], isAnswered: true),
        Link(fields: [("Referer", "https://app.example")], isAnswered: true),
        Link(method: "HEAD", fields: [("Referer", "https://app.example/")], isAnswered: true),
        Link(method: "DELETE", fields: [("Referer", "https://app.example/")], isAnswered: false),
        Link(method: "POST", fields: [("Referer", "https://app.example/")], isAnswered: false),
        Link(fields: [], isAnswered: false),
        Link(fields: [("Referer", "")], isAnswered: false),
        Link(fields: [("Referer", "http://app.example/")], isAnswered: false),
        Link(fields: [("Referer", "https://app.example.evil.example/")], isAnswered: false),
        Link(fields: [("Referer", "https://app.example@evil.example/")], isAnswered: false),
        Link(fields: [("Referer", "https://evil.example/https://app.example/")], isAnswered: false),
        Link(
            fields: [("Referer", "https://app.example/"), ("Origin", "https://evil.example")],
            isAnswered: false),
        Link(fields: [("Referer", "https://app.example/"), ("Origin", "null")], isAnswered: false),
    ])
    func `a page of an allowed origin may link to files`(link: Link) async throws {
        try await Self.withPages(of: Self.page) { server in
            let file = try await server.upload([1, 2, 3])
            let target = link.method == "POST" ? "/files" : "/files/\(file.remoteFileId)"
            let request = HTTPRequestBytes(link.method, target, Self.link + link.fields)
            let answer = try await server.connect().ask(request)
            #expect(answer.status == (link.isAnswered ? 200 : 400))
        }
    }

    @Test func `a star allows links from every page, and the default allows none`() async throws {
        try await Self.withPages(of: "*") { server in
            for fields in [[], [("Referer", "https://any.example/")]] {
                #expect(try await server.get("/files", Self.link + fields).status == 200)
                for method in ["POST", "DELETE"] {
                    try expectProblem(
                        try await server.ask(
                            HTTPRequestBytes(method, "/files", Self.link + fields)), .badRequest)
                }
            }
            // A subresource without an origin is no link.
            let image = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")]
            try expectProblem(try await server.get("/files", image), .badRequest)
        }
        try await SharedServer.use { server in
            for fields in [[], [("Referer", "https://any.example/")]] {
                try expectProblem(
                    try await server.get("/files", Self.link + fields), .badRequest)
            }
        }
    }

    @Test(arguments: [("*", true), ("https://app.example", false), ("", false)])
    func `the service warns at start when every origin is allowed`(
        origins: String, warns: Bool
    ) async throws {
        try await Self.withPages(of: origins) { server in
            let warnings = server.fixture.log.lines.filter {
                $0.level == .warning && $0.metadata["cors.allowedOrigins"] == "*"
            }
            #expect(warnings.count == (warns ? 1 : 0))
        }
    }

    @Test func `answers have no CORS headers by default`() async throws {
        try await SharedServer.use { server in
            let answer = try await server.get("/files")
            #expect(answer.field("Access-Control-Allow-Origin") == nil)
            #expect(answer.field("Vary") == nil)
        }
    }

    @Test(arguments: ["app.example", "https://a, b", "https://a/path", "*, https://a", "null"])
    func `a malformed list of origins is refused`(text: String) {
        #expect(CORSPolicy(text: text) == nil)
    }
}
