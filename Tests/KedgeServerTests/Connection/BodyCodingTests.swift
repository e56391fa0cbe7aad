import KedgeModel
import KedgeTesting
import Testing

/// Codings of bodies. The service stores bodies as sent: digests and offsets count the bytes on the
/// wire.
@Suite(.timeLimit(.minutes(1))) struct BodyCodingTests {
    private static func bodies(of upload: Upload) throws -> [HTTPRequestBytes] {
        [
            upload.put(1), upload.finalize(upload.digest), upload.finalize(),
            HTTPRequestBytes("POST", "/files", body: [1, 2, 3]),
            try .createSession(.init(fileName: "a", fileSize: 1)),
        ]
    }

    @Test(arguments: ["gzip", "GZIP", "identity, gzip", "br", "x", "aes128gcm", "identity;q=1"])
    func `a body with a Content-Encoding is refused, and the answer allows only identity`(
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
    func `identity counts as no Content-Encoding`(coding: String) async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            let answer = try await server.ask(
                upload.put(0).with([("Content-Encoding", coding)]))
            #expect(answer.status == 201)
        }
    }

    /// The server refuses before it asks for the body.
    @Test func `a client that expects 100 Continue is refused before it sends its encoded body`()
        async throws
    {
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
    func `a Transfer-Encoding other than chunked alone is refused as not implemented`(
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

    /// RFC 9112 section 6.3: the end of such a body is unknown.
    @Test(arguments: ["chunked, gzip", "chunked, chunked"])
    func `a Transfer-Encoding with chunked twice or not last is malformed`(
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

    /// A proxy that reads such a field in another way could forward the body as the next request.
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
    func `a body with chunked as its only transfer coding is accepted`(coding: String) async throws
    {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send(
                "POST /files HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: \(coding)\r\n\r\n"
                    + "1\r\nx\r\n0\r\n\r\n")
            #expect(try await connection.answer().status == 201)
        }
    }
}
