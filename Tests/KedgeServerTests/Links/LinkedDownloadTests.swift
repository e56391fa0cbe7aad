import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Downloads by a `get` link.
@Suite(.timeLimit(.minutes(1))) struct LinkedDownloadTests {
    private static let inline = #""disposition":"inline""#

    @Test func `a video element seeks by ranges`() async throws {
        try await withTokenServer { server in
            let content = sampleBytes(10_000)
            let file = try await server.storeFile(content, type: "video/mp4")
            let path = try target(try await server.makeGetLink(file, Self.inline).url)
            for (range, bytes) in [
                ("bytes=0-", 0..<10_000), ("bytes=5000-", 5000..<10_000),
                ("bytes=9000-9099", 9000..<9100),
            ] {
                let answer = try await server.get(path, [("Range", range)])
                #expect(answer.status == 206)
                #expect(answer.body == Array(content[bytes]))
                #expect(answer.field("Content-Type") == "video/mp4")
                #expect(answer.field("Content-Disposition")?.hasPrefix("inline;") == true)
                #expect(answer.field("Referrer-Policy") == "no-referrer")
                #expect(answer.field("X-Content-Type-Options") == "nosniff")
                #expect(answer.field("Content-Security-Policy")?.hasPrefix("sandbox;") == true)
            }
            let head = try await server.connect().ask(HTTPRequestBytes("HEAD", path))
            #expect(head.field("Content-Length") == "10000")
            #expect(head.field("Content-Disposition")?.hasPrefix("inline;") == true)
        }
    }

    @Test(arguments: [
        ("video/mp4", true), ("audio/ogg", true), ("image/png", true), ("IMAGE/PNG", true),
        ("application/pdf", true), ("text/plain; charset=utf-8", true),
        ("image/svg+xml", false), ("Image/SVG+XML", false), ("image/svg+xml;x=y", false),
        ("text/html", false), ("text/javascript", false), ("application/xhtml+xml", false),
        ("application/octet-stream", false),
    ])
    func `only types without scripts are shown`(type: String, isShown: Bool) async throws {
        try await withTokenServer { server in
            let file = try await server.storeFile([1], type: type)
            let shown = try target(try await server.makeGetLink(file, Self.inline).url)
            let answer = try await server.get(shown)
            let value = try #require(answer.field("Content-Disposition"))
            #expect(value.hasPrefix(isShown ? "inline;" : "attachment;"))
            let saved = try target(try await server.makeGetLink(file).url)
            #expect(
                try await server.get(saved).field("Content-Disposition")?.hasPrefix("attachment;")
                    == true)
        }
    }

    @Test func `a link names the file that is saved`() async throws {
        try await withTokenServer { server in
            let file = try await server.storeFile([1])
            let path = try target(
                try await server.makeGetLink(file, #""fileName":"Übung.txt""#).url)
            let value = try await server.get(path).field("Content-Disposition")
            #expect(
                value == #"attachment; filename="_bung.txt"; filename*=UTF-8''%C3%9Cbung.txt"#)
        }
    }

    @Test func `a tus upload that became the file is read by its link`() async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken()
            let created = try await server.ask(
                .tus("POST", "/tus/", [("Upload-Length", "2")] + token.fields))
            let path = try #require(created.tusPath)
            let last = try await server.ask(.tusPatch(path, at: 0, [1, 2], token.fields))
            let id = try #require(last.field("Content-Location")?.split(separator: "/").last)
            let link = try await server.makeGetLink(try #require(FileID(id)))
            let answer = try await server.get("\(path)?link=\(try linkText(link.url))")
            #expect(answer.body == [1, 2])
        }
    }

    @Test func `a link of a deleted file says that it is gone`() async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken()
            let file = try await server.storeFile([1])
            let path = try target(try await server.makeGetLink(file).url)
            let deleted = try await server.ask(
                HTTPRequestBytes("DELETE", "/files/\(file)", token.fields))
            #expect(deleted.status == 204)
            try expectProblem(try await server.get(path), .fileGone)
        }
    }
}
