import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Links in pages of other origins.
@Suite(.timeLimit(.minutes(1))) struct LinkedPageTests {
    private static let page = "https://app.example"
    private static let crossSite = ("Sec-Fetch-Site", "cross-site")
    private static let origins = #""origins":["https://app.example"]"#

    @Test func `a page that the link names creates and continues an upload`() async throws {
        try await withTokenServer { server in
            let endpoint = try target(try await server.makePutLink(Self.origins).tusUrl)
            let origin = [("Origin", Self.page), Self.crossSite]
            let preflight = try await server.ask(
                HTTPRequestBytes(
                    "OPTIONS", endpoint,
                    origin + [
                        ("Access-Control-Request-Method", "POST"),
                        ("Access-Control-Request-Headers", "tus-resumable,upload-length"),
                    ]))
            #expect(preflight.status == 204)
            #expect(preflight.field("Access-Control-Allow-Origin") == Self.page)
            #expect(preflight.field("Access-Control-Allow-Credentials") == nil)
            let created = try await server.ask(
                .tus("POST", endpoint, origin + [("Upload-Length", "2")]))
            #expect(created.status == 201)
            #expect(created.field("Access-Control-Allow-Origin") == Self.page)
            #expect(created.field("Access-Control-Expose-Headers")?.contains("Location") == true)
            #expect(created.field("Vary") == "Origin")
            let path = try #require(created.tusPath)
            let appended = try await server.ask(.tusPatch(path, at: 0, [1, 2], origin))
            #expect(appended.status == 204)
            #expect(appended.field("Access-Control-Allow-Origin") == Self.page)
            // The page reads errors, too.
            let wrong = try await server.ask(.tusPatch(path, at: 5, [1], origin))
            #expect(wrong.status == 409)
            #expect(wrong.field("Access-Control-Allow-Origin") == Self.page)
        }
    }

    @Test(arguments: [
        "https://evil.example", "http://app.example", "null", "https://app.example:1",
    ])
    func `a page that the link does not name is refused`(origin: String) async throws {
        try await withTokenServer { server in
            for link in [
                try await server.makePutLink(Self.origins), try await server.makePutLink(),
            ] {
                let answer = try await server.ask(
                    .tus(
                        "POST", try target(link.tusUrl),
                        [("Origin", origin), ("Upload-Length", "2")]))
                try expectProblem(answer, .badRequest)
                #expect(answer.field("Access-Control-Allow-Origin") == nil)
            }
            let token = try await server.makeToken()
            let list = try await server.get("/uploads/sessions", token.fields)
            #expect(try list.decoded(SessionList.self).sessions.isEmpty)
        }
    }

    @Test func `a link opens nothing else to pages`() async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken()
            let link = try await server.makePutLink(Self.origins)
            let text = try linkText(link.url)
            let origin = [("Origin", Self.page)]
            for target in ["/files", "/healthz", "/files?link=\(text)", "/healthz?link=\(text)"] {
                let answer = try await server.get(target, origin + token.fields)
                #expect([400, 403].contains(answer.status), "\(target)")
            }
            let plain = try await server.ask(
                HTTPRequestBytes(
                    "OPTIONS", "/tus/", origin + [("Access-Control-Request-Method", "POST")]))
            try expectProblem(plain, .badRequest)
        }
    }

    @Test func `a file is embedded only where the link names the page`() async throws {
        try await withTokenServer { server in
            let file = try await server.storeFile([1, 2, 3], type: "video/mp4")
            let embedded = [Self.crossSite, ("Sec-Fetch-Mode", "no-cors")]
            let referer = [("Referer", "\(Self.page)/")]
            let open = try target(try await server.makeGetLink(file, Self.origins).url)
            let answer = try await server.get(open, embedded + referer)
            #expect(answer.status == 200)
            #expect(answer.field("Cross-Origin-Resource-Policy") == "cross-origin")
            #expect(try await server.get(open, embedded).status == 400)
            #expect(
                try await server.get(open, embedded + [("Referer", "https://evil.example/")])
                    .status == 400)
            let closed = try target(try await server.makeGetLink(file).url)
            let refused = try await server.get(closed, embedded + referer)
            #expect(refused.status == 400)
            let followed = try await server.get(
                closed, [Self.crossSite, ("Sec-Fetch-Mode", "navigate")])
            #expect(followed.status == 200)
            #expect(followed.field("Cross-Origin-Resource-Policy") == nil)
        }
    }
}
