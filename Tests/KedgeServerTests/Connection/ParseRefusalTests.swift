import KedgeModel
import KedgeServer
import KedgeTesting
import Logging
import Testing

/// Malformed requests get the same kind of answer as every other error, once.
@Suite(.timeLimit(.minutes(1))) struct ParseRefusalTests {
    private static let good = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    private static let bad = "GET /heal thz HTTP/1.1\r\nHost: localhost\r\n\r\n"

    private static func expectRefusal(_ connection: ClientConnection) async throws {
        let answer = try await connection.answer()
        try expectProblem(answer, .badRequest)
        #expect(answer.field("Connection") == "close")
        #expect(answer.field("Cache-Control") == "no-store")
        #expect(answer.isWhole)
        #expect(try await connection.untilClosed().isEmpty)
    }

    @Test(arguments: [
        bad, "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0", "GET /healthz HTTP/9.9\r\n\r\n", "hello\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET /healthz HTTP/1.1\r\nX : 1\r\n\r\n",
        "GET /healthz HTTP/1.1\r\n: 1\r\n\r\n", "GET /healthz HTTP/1.1\r\nX: \0\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nX: \(String(repeating: "a", count: 1 << 17))\r\n\r\n",
        "GET /healthz HTTP/1.1\r\n\(String(repeating: "X: y\r\n", count: 1000))\r\n",
    ])
    func `a malformed request gets a problem document, and the connection ends`(text: String)
        async throws
    {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send(text)
            try await Self.expectRefusal(connection)
        }
    }

    @Test(arguments: ["GET /heal", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"])
    func `a truncated head gets a problem document, and the connection ends`(text: String)
        async throws
    {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send(text)
            try await connection.finishSending()
            try await Self.expectRefusal(connection)
        }
    }

    @Test func `requests before a malformed one are answered first`() async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send(Self.good + Self.good + Self.bad + Self.good)
            for _ in 0..<2 { #expect(try await connection.answer().status == 200) }
            try await Self.expectRefusal(connection)
        }
    }

    @Test func `a malformed request on a used connection is refused, too`() async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send(Self.good)
            #expect(try await connection.answer().status == 200)
            try await connection.send(Self.bad)
            try await Self.expectRefusal(connection)
        }
    }

    /// Closing with unread bytes would reset the connection and lose the answer.
    @Test func `a client that sends all before it reads gets its answer`() async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send(Self.bad)
            #expect(try await connection.sendZeros(4 << 20) == 4 << 20)
            try await Self.expectRefusal(connection)
        }
    }

    @Test func `the log has the request id of the answer`() async throws {
        try await withServer { server in
            let connection = try await server.connect()
            try await connection.send(Self.bad)
            let problem = try expectProblem(try await connection.answer(), .badRequest)
            let lines = server.fixture.log.lines.filter {
                $0.metadata["request.id"]?.description == problem.requestId
            }
            #expect(lines.count == 1)
            #expect(lines.first?.metadata["http.status"]?.description == "400")
        }
    }

    /// The refused body then breaks off, which gets no second answer.
    @Test(arguments: ["POST /nowhere", "PUT /files", "PUT /uploads/sessions/x/chunks/0"])
    func `an early answer to a refused body is the only one`(line: String) async throws {
        try await SharedServer.use { server in
            for framing in ["Content-Length: 1000", "Transfer-Encoding: chunked"] {
                let connection = try await server.connect()
                try await connection.send(
                    "\(line) HTTP/1.1\r\nHost: localhost\r\n\(framing)\r\n\r\n5\r\nabc")
                #expect((400..<500).contains(try await connection.answer().status))
                try await connection.finishSending()
                #expect(try await connection.untilClosed().isEmpty)
            }
        }
    }

    @Test(arguments: ["POST /nowhere", "POST /files", "POST /uploads/sessions"])
    func `a malformed body is answered once`(line: String) async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send(
                "\(line) HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
                    + "Content-Type: application/json\r\n\r\n3\r\nabc\r\nzz\r\n" + Self.good)
            let answer = try await connection.answer()
            #expect((400..<500).contains(answer.status))
            #expect(answer.field("Connection") == "close")
            #expect(try await connection.untilClosed().isEmpty)
        }
    }

    /// The server keeps the bytes that came before, as for every body that breaks off.
    @Test func `a chunk that breaks off is answered once, and its bytes kept`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            let connection = try await server.connect()
            try await connection.send(upload.put(0).head + upload.chunk(0)[..<400])
            try await connection.finishSending()
            try expectProblem(try await connection.answer(), .lengthMismatch)
            #expect(try await connection.untilClosed().isEmpty)
            #expect(try await server.status(of: upload).partialChunks.map(\.receivedBytes) == [400])
        }
    }
}
