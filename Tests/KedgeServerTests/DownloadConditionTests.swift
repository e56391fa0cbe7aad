import KedgeModel
import Testing

/// `GET` and `HEAD /files/{fileId}` with conditions (RFC 9110 section 13).
@Suite(.timeLimit(.minutes(1))) struct `Downloading under a condition` {
    /// Asks under conditions with `TAG` in place of the file's entity tag.
    private static func asking(
        _ fields: [(String, String)], _ body: @Sendable (HTTPAnswer) throws -> Void
    ) async throws {
        try await SharedServer.use { server in
            let file = try await server.upload(sampleBytes(2500))
            let filled = fields.map { name, value in
                (name, value.replacing("TAG", with: file.etag))
            }
            for method in ["GET", "HEAD"] {
                let answer = try await server.ask(
                    HTTPRequestBytes(method, "/files/\(file.remoteFileId)", filled))
                if method == "HEAD" {
                    #expect(answer.body.isEmpty)
                    // A range is for GET alone (RFC 9110 section 14.2).
                    guard answer.status != 200 else { continue }
                }
                try body(answer)
            }
        }
    }

    @Test(arguments: ["TAG", "*", "\"x\", TAG", "TAG,TAG", " TAG ", "\"a,b\",TAG"])
    func `If-Match lets the version through that it names`(value: String) async throws {
        try await Self.asking([("If-Match", value)]) { #expect($0.status == 200) }
    }

    /// Strong comparison: a weak tag names nothing.
    @Test(arguments: ["\"x\"", "W/TAG", "", "\"*\"", "x", "\"x\",W/TAG", "TAGx"])
    func `If-Match refuses any other`(value: String) async throws {
        try await Self.asking([("If-Match", value)]) { answer in
            #expect(answer.status == 412)
        }
    }

    @Test(arguments: ["TAG", "*", "W/TAG", "\"x\", TAG", "\"a,b\", W/TAG"])
    func `If-None-Match spares the client what it has`(value: String) async throws {
        try await Self.asking([("If-None-Match", value), ("Range", "bytes=0-9")]) { answer in
            #expect(answer.status == 304)
            #expect(answer.body.isEmpty)
            #expect(answer.field("ETag") != nil)
            #expect(answer.field("Content-Range") == nil)
        }
    }

    @Test(arguments: ["\"x\"", "W/\"x\"", "", "\"*\""])
    func `If-None-Match gives what the client does not have`(value: String) async throws {
        try await Self.asking([("If-None-Match", value)]) { answer in
            #expect(answer.status == 200)
            #expect(answer.body.count == 2500)
        }
    }

    @Test func `a refusal comes before everything else`() async throws {
        let fields = [
            ("If-Match", "\"x\""), ("If-None-Match", "TAG"), ("Range", "bytes=9000-"),
        ]
        try await Self.asking(fields) { #expect($0.status == 412) }
    }

    /// R99.
    @Test func `If-Range gives the range of the version it names`() async throws {
        try await Self.asking([("If-Range", "TAG"), ("Range", "bytes=0-9")]) { answer in
            #expect(answer.status == 206)
            #expect(answer.body.count == 10)
        }
    }

    /// A part of another version must never be put beside what the client has.
    @Test(arguments: [
        "\"x\"", "W/TAG", "", "*", "TAG, TAG", "\"x\", TAG", "Sat, 21 Nov 2026 03:06:47 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
    ])
    func `If-Range gives the whole of any other`(value: String) async throws {
        try await Self.asking([("If-Range", value), ("Range", "bytes=0-9")]) { answer in
            #expect(answer.status == 200)
            #expect(answer.body.count == 2500)
        }
    }

    @Test func `a range that does not exist is not asked of another version`() async throws {
        try await Self.asking([("If-Range", "\"x\""), ("Range", "bytes=9000-")]) { answer in
            #expect(answer.status == 200)
        }
    }

    /// Whatever follows on the connection is the next answer.
    @Test func `304 ends with its head`() async throws {
        try await SharedServer.use { server in
            let file = try await server.upload(sampleBytes(2500))
            let connection = try await server.connect()
            let path = "/files/\(file.remoteFileId)"
            let known = try await connection.ask(
                HTTPRequestBytes("GET", path, [("If-None-Match", file.etag)]))
            #expect(known.status == 304)
            let next = try await connection.ask(HTTPRequestBytes("GET", path))
            #expect(next.status == 200)
            #expect(next.body.count == 2500)
        }
    }
}
