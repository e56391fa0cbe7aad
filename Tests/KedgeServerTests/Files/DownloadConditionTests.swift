import KedgeModel
import KedgeTesting
import Testing

/// `GET` and `HEAD /files/{fileId}` with conditions (RFC 9110 section 13).
@Suite(.timeLimit(.minutes(1))) struct DownloadConditionTests {
    /// Asks with conditional fields, in which `TAG` stands for the file's entity tag.
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
    func `If-Match serves the version that it names`(value: String) async throws {
        try await Self.asking([("If-Match", value)]) { #expect($0.status == 200) }
    }

    /// The comparison is strong: a weak tag never matches.
    @Test(arguments: ["\"x\"", "W/TAG", "", "\"*\"", "x", "\"x\",W/TAG", "TAGx"])
    func `If-Match refuses every other version`(value: String) async throws {
        try await Self.asking([("If-Match", value)]) { answer in
            #expect(answer.status == 412)
        }
    }

    @Test(arguments: ["TAG", "*", "W/TAG", "\"x\", TAG", "\"a,b\", W/TAG"])
    func `If-None-Match answers 304 for the version that the client has`(value: String) async throws
    {
        try await Self.asking([("If-None-Match", value), ("Range", "bytes=0-9")]) { answer in
            #expect(answer.status == 304)
            #expect(answer.body.isEmpty)
            #expect(answer.field("ETag") != nil)
            #expect(answer.field("Content-Range") == nil)
        }
    }

    @Test(arguments: ["\"x\"", "W/\"x\"", "", "\"*\""])
    func `If-None-Match serves a version that the client does not have`(value: String) async throws
    {
        try await Self.asking([("If-None-Match", value)]) { answer in
            #expect(answer.status == 200)
            #expect(answer.body.count == 2500)
        }
    }

    @Test func `a failed If-Match takes precedence over other conditions`() async throws {
        let fields = [
            ("If-Match", "\"x\""), ("If-None-Match", "TAG"), ("Range", "bytes=9000-"),
        ]
        try await Self.asking(fields) { #expect($0.status == 412) }
    }

    /// R99.
    @Test func `If-Range serves the range of the version that it names`() async throws {
        try await Self.asking([("If-Range", "TAG"), ("Range", "bytes=0-9")]) { answer in
            #expect(answer.status == 206)
            #expect(answer.body.count == 10)
        }
    }

    /// A client must never combine ranges of two versions.
    @Test(arguments: [
        "\"x\"", "W/TAG", "", "*", "TAG, TAG", "\"x\", TAG", "Sat, 21 Nov 2026 03:06:47 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
    ])
    func `If-Range serves the whole file of any other version`(value: String) async throws {
        try await Self.asking([("If-Range", value), ("Range", "bytes=0-9")]) { answer in
            #expect(answer.status == 200)
            #expect(answer.body.count == 2500)
        }
    }

    @Test func `a range outside the file is ignored for another version`() async throws {
        try await Self.asking([("If-Range", "\"x\""), ("Range", "bytes=9000-")]) { answer in
            #expect(answer.status == 200)
        }
    }

    /// The next bytes on the connection are the next answer.
    @Test func `a 304 answer ends with its head`() async throws {
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
