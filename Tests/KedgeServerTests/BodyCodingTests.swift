import KedgeModel
import Testing

/// Bodies are taken as they are: digests and offsets are of the bytes that are sent.
@Suite(.timeLimit(.minutes(1))) struct `The coding of a body` {
    private static func bodies(of upload: Upload) throws -> [HTTPRequestBytes] {
        [
            upload.put(1), upload.finalize(upload.digest), upload.finalize(),
            HTTPRequestBytes("POST", "/files", body: [1, 2, 3]),
            try .createSession(.init(fileName: "a", fileSize: 1)),
        ]
    }

    @Test(arguments: ["gzip", "GZIP", "identity, gzip", "br", "x", "aes128gcm", "identity;q=1"])
    func `a body with a Content-Encoding is refused, and the coding named`(
        coding: String
    ) async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            for request in try Self.bodies(of: upload) {
                let answer = try await expectUnchanged(upload, on: server) {
                    try await server.ask(request.with([("Content-Encoding", coding)]))
                }
                try expectProblem(answer, .unsupportedMediaType)
                #expect(answer.field("Accept-Encoding") == "identity")
            }
        }
    }

    @Test func `a second Content-Encoding field counts, too`() async throws {
        try await SharedServer.use { server in
            let answer = try await server.ask(
                HTTPRequestBytes(
                    "POST", "/files",
                    [("Content-Encoding", "identity"), ("Content-Encoding", "gzip")], body: [1]))
            try expectProblem(answer, .unsupportedMediaType)
        }
    }

    @Test(arguments: ["identity", "Identity", "", " , identity,"])
    func `identity is no coding`(coding: String) async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            let answer = try await server.ask(
                upload.put(0).with([("Content-Encoding", coding)]))
            #expect(answer.status == 201)
        }
    }

    /// The refusal comes before the body is asked for.
    @Test func `a client that waits keeps its encoded body`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            let connection = try await server.connect()
            try await connection.send(
                upload.put(0).with([("Expect", "100-continue"), ("Content-Encoding", "gzip")])
                    .head)
            try expectProblem(try await connection.answer(), .unsupportedMediaType)
        }
    }

    /// RFC 9112 section 6.1.
    @Test(arguments: ["gzip, chunked", "gzip", "identity", "x", "chunked;a=b"])
    func `a Transfer-Encoding that is not chunked alone is not implemented`(
        coding: String
    ) async throws {
        try await SharedServer.use { server in
            for target in ["/files", "/nowhere"] {
                let connection = try await server.connect()
                try await connection.send(
                    "POST \(target) HTTP/1.1\r\nHost: localhost\r\n"
                        + "Transfer-Encoding: \(coding)\r\n\r\n1\r\nx\r\n0\r\n\r\n")
                try expectProblem(try await connection.answer(), .unsupportedTransferCoding)
            }
        }
    }

    /// RFC 9112 section 6.3: nobody can say where such a body ends.
    @Test(arguments: ["chunked, gzip", "chunked, chunked"])
    func `chunked that is not the last coding, or not once, is no request`(
        coding: String
    ) async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send(
                "POST /files HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: \(coding)\r\n\r\n"
                    + "1\r\nx\r\n0\r\n\r\n")
            try expectProblem(try await connection.answer(), .badRequest)
            #expect(try await connection.untilClosed().isEmpty)
        }
    }

    @Test(arguments: ["gzip", "x"])
    func `a body whose end is unknown ends the connection, after one answer`(
        coding: String
    ) async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send(
                "POST /files HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: \(coding)\r\n\r\n"
                    + "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let answer = try await connection.answer()
            try expectProblem(answer, .unsupportedTransferCoding)
            #expect(answer.field("Connection") == "close")
            #expect(try await connection.untilClosed().isEmpty)
        }
    }

    /// A front end that reads a body from such a field would send it here as the next request.
    @Test(arguments: ["", " ", ",", "chunked,", ", chunked"])
    func `an empty Transfer-Encoding is malformed and ends the connection`(
        coding: String
    ) async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send(
                "POST /files HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: \(coding)\r\n\r\n"
                    + "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let answer = try await connection.answer()
            try expectProblem(answer, .badRequest)
            #expect(answer.field("Connection") == "close")
            #expect(try await connection.untilClosed().isEmpty)
        }
    }

    @Test(arguments: ["chunked", "Chunked"])
    func `chunked alone is taken`(coding: String) async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send(
                "POST /files HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: \(coding)\r\n\r\n"
                    + "1\r\nx\r\n0\r\n\r\n")
            #expect(try await connection.answer().status == 201)
        }
    }
}
