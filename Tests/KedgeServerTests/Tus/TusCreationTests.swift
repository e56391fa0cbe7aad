import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// `POST /tus/`.
@Suite(.timeLimit(.minutes(1))) struct TusCreationTests {
    @Test func `a new upload is empty at its Location until it expires`() async throws {
        try await withServer { server in
            let answer = try await server.ask(.tus("POST", "/tus/", [("Upload-Length", "100")]))
            #expect(answer.status == 201)
            let path = try #require(answer.tusPath)
            #expect(path.wholeMatch(of: /\/tus\/[0-9a-f]{32}/) != nil)
            let expiry = try #require(answer.field("Upload-Expires"))
            let time = Timestamp(httpDate: expiry)?.duration(since: server.fixture.clock.now())
            #expect(time.map { $0 > .seconds(3590) && $0 <= .seconds(3600) } == true)
            let head = try await server.tusHead(path)
            #expect(head.status == 200)
            #expect(head.field("Upload-Offset") == "0")
            #expect(head.field("Upload-Length") == "100")
            #expect(head.field("Upload-Defer-Length") == nil)
            #expect(head.field("Upload-Expires") == expiry)
            #expect(head.field("Cache-Control") == "no-store")
            #expect(head.field("Upload-Metadata") == nil)
            server.fixture.clock.advance(by: .seconds(8 * 86_400))
            let expired = try await server.tusHead(path)
            #expect(expired.status == 410)
            #expect(expired.field("Upload-Offset") == nil)
            let patch = try await server.ask(.tusPatch(path, at: 0, [1]))
            try expectProblem(patch, .sessionExpired)
        }
    }

    @Test(arguments: [
        [], [("Upload-Length", "")], [("Upload-Length", "-1")], [("Upload-Length", "1.5")],
        [("Upload-Length", "x")], [("Upload-Length", "1, 1")], [("Upload-Defer-Length", "2")],
        [("Upload-Defer-Length", "0")], [("Upload-Defer-Length", "")],
        [("Upload-Defer-Length", "1"), ("Upload-Length", "1")],
    ])
    func `a missing or malformed length is refused`(fields: [(String, String)]) async throws {
        try await SharedServer.use { server in
            try expectProblem(
                try await server.ask(.tus("POST", "/tus/", fields)), .badRequest)
        }
    }

    @Test(arguments: ["1099511627777", "99999999999999999999999"])
    func `a length beyond the limit is refused with the limit`(length: String) async throws {
        try await SharedServer.use { server in
            let answer = try await server.ask(
                .tus("POST", "/tus/", [("Upload-Length", length)]))
            let problem = try expectProblem(answer, .fileTooLarge)
            #expect(problem.maxBytes == 1 << 40)
        }
    }

    @Test(arguments: [0, 1, 5000])
    func `the body of a creation becomes the first bytes, or the whole file`(rest: Int) async throws
    {
        try await SharedServer.use { server in
            let content = sampleBytes(5000 + rest, seed: UInt64(7 + rest))
            let answer = try await server.ask(
                .tus(
                    "POST", "/tus/",
                    [
                        ("Upload-Length", "\(content.count)"),
                        ("Content-Type", "application/offset+octet-stream"),
                    ], body: Array(content[..<5000])))
            #expect(answer.status == 201)
            #expect(answer.field("Upload-Offset") == "5000")
            let path = try #require(answer.tusPath)
            if rest > 0 {
                #expect(answer.field("Upload-Expires") != nil)
                let patch = try await server.ask(
                    .tusPatch(path, at: 5000, Array(content[5000...])))
                #expect(patch.status == 204)
            }
            #expect(try await server.get(path).body == content)
        }
    }

    @Test(arguments: [
        [("Upload-Length", "3"), ("Content-Type", "text/plain")],
        [("Upload-Length", "3"), ("Content-Type", "application/offset+octet-streams")],
        [("Upload-Defer-Length", "1")],
    ])
    func `a creation with a body of another media type is refused and makes no upload`(
        fields: [(String, String)]
    ) async throws {
        try await expectNothing { server in
            let answer = try await server.ask(.tus("POST", "/tus/", fields, body: [1, 2, 3]))
            try expectProblem(answer, .unsupportedMediaType)
            #expect(answer.field("Location") == nil)
        }
    }

    /// The client has not learned the address, so no request would ever end the upload.
    @Test(arguments: [false, true])
    func `a creation with bytes beyond its length is refused and makes no upload`(
        isAnnounced: Bool
    ) async throws {
        try await expectNothing { server in
            let request = HTTPRequestBytes.tus(
                "POST", "/tus/",
                [("Upload-Length", "2"), ("Content-Type", "application/offset+octet-stream")],
                body: [1, 2, 3])
            let answer = try await server.ask(
                isAnnounced ? request : request.chunked([[1, 2, 3]]))
            let problem = try expectProblem(answer, .fileTooLarge)
            #expect(isAnnounced || problem.maxBytes == 2)
            #expect(answer.field("Location") == nil)
        }
    }

    @Test func `a creation that breaks off makes no upload`() async throws {
        try await expectNothing { server in
            let request = HTTPRequestBytes.tus(
                "POST", "/tus/",
                [("Upload-Length", "9000"), ("Content-Type", "application/offset+octet-stream")],
                body: sampleBytes(9000))
            let connection = try await server.connect()
            try await connection.send(Array(request.bytes.dropLast(1000)))
            try await connection.finishSending()
            let answer = try await connection.answer()
            try expectProblem(answer, .lengthMismatch)
            #expect(answer.field("Location") == nil)
        }
    }

    /// Expects that the requests of a test leave no session open.
    private func expectNothing(
        _ body: (RunningServer) async throws -> Void
    ) async throws {
        let fixture = try await ServerEnvironment()
        let path = try await fixture.withServer { server in
            try await body(server)
            return try await server.tusUpload(byteCount: 1)
        }
        // The list shows the test's own upload, so it would show others, too.
        #expect(try await fixture.openSessions().map { "/tus/\($0)" } == [path])
    }

    @Test func `an empty upload is a file at once`() async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 0)
            let head = try await server.tusHead(path)
            #expect(head.field("Upload-Offset") == "0")
            #expect(head.field("Upload-Length") == "0")
            #expect(head.field("Upload-Expires") == nil)
            let answer = try await server.get(path)
            #expect(answer.status == 200)
            #expect(answer.body.isEmpty)
        }
    }

    @Test func `an append sets a deferred length, once`() async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload([("Upload-Defer-Length", "1")])
            let before = try await server.tusHead(path)
            #expect(before.field("Upload-Defer-Length") == "1")
            #expect(before.field("Upload-Length") == nil)
            let content = sampleBytes(300, seed: 11)
            _ = try await server.ask(.tusPatch(path, at: 0, Array(content[..<100])))
            let patch = try await server.ask(
                .tusPatch(path, at: 100, Array(content[100..<200]), [("Upload-Length", "300")]))
            #expect(patch.status == 204)
            #expect(patch.field("Upload-Offset") == "200")
            let head = try await server.tusHead(path)
            #expect(head.field("Upload-Length") == "300")
            #expect(head.field("Upload-Defer-Length") == nil)
            let other = try await server.ask(
                .tusPatch(path, at: 200, Array(content[200...]), [("Upload-Length", "301")]))
            // Clients would retry after 409, and a retry cannot succeed.
            try expectProblem(other, .badRequest)
            try await expectOffset(200, of: path, on: server)
            _ = try await server.ask(
                .tusPatch(path, at: 200, Array(content[200...]), [("Upload-Length", "300")]))
            #expect(try await server.get(path).body == content)
        }
    }

    @Test func `a deferred length below the received bytes is refused for good`() async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload([("Upload-Defer-Length", "1")])
            _ = try await server.ask(.tusPatch(path, at: 0, sampleBytes(100)))
            let answer = try await server.ask(
                .tusPatch(path, at: 100, [], [("Upload-Length", "99")]))
            try expectProblem(answer, .badRequest)
            let head = try await server.tusHead(path)
            #expect(head.field("Upload-Offset") == "100")
            #expect(head.field("Upload-Defer-Length") == "1")
        }
    }

    @Test(arguments: [0, 1, 100, 4096])
    func `a deferred length can be set after all bytes`(byteCount: Int) async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(byteCount, seed: 12)
            let path = try await server.tusUpload([("Upload-Defer-Length", "1")])
            if byteCount > 0 { _ = try await server.ask(.tusPatch(path, at: 0, content)) }
            let patch = try await server.ask(
                .tusPatch(path, at: byteCount, [], [("Upload-Length", "\(byteCount)")]))
            #expect(patch.status == 204)
            #expect(try await server.get(path).body == content)
        }
    }
}
