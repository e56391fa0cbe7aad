import KedgeEngine
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Limits of a connection: heads of bounded size, and bounded waits.
@Suite(.timeLimit(.minutes(2))) struct ConnectionLimitTests {
    struct Flood: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var text: String
    }

    private static let start = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    private static func repeating(_ text: String, _ count: Int) -> String {
        String(repeating: text, count: count)
    }

    @Test(arguments: [
        Flood(testDescription: "many fields", text: start + repeating("X: y\r\n", 1000) + "\r\n"),
        Flood(
            testDescription: "a large value",
            text: start + "X: \(repeating("a", 1 << 17))\r\n\r\n"),
        Flood(
            testDescription: "a large name",
            text: start + "\(repeating("a", 1 << 17)): x\r\n\r\n"),
        Flood(
            testDescription: "large values",
            text: start + repeating("X: \(repeating("a", 15 << 10))\r\n", 5) + "\r\n"),
        Flood(
            testDescription: "a large target",
            text: "GET /\(repeating("a", 1 << 17)) HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ])
    func `a head that is too large is refused`(flood: Flood) async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send(flood.text)
            let answer = try await connection.answer()
            #expect((400..<500).contains(answer.status))
        }
    }

    @Test(arguments: [
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0", "GET /healthz\r\n\r\n", "\0\0\0\0\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET /healthz HTTP/9.9\r\n\r\n",
        "GET /heal thz HTTP/1.1\r\nHost: localhost\r\n\r\n", start + "X : 1\r\n\r\n",
        start + "X: 1\r\n 2\r\n\r\n", start + "X: \0\r\n\r\n",
        start + "Content-Length: -1\r\n\r\n", start + "Content-Length: +1\r\n\r\n",
        start + "Content-Length: 1e3\r\n\r\n",
        start + "Content-Length: 18446744073709551616\r\n\r\n",
        start + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        start + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ])
    func `a malformed request is refused, and the connection ends`(text: String) async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send(text)
            try await connection.finishSending()
            let answer = try await connection.answer()
            #expect((400..<506).contains(answer.status) && answer.status != 500)
            let rest = try await connection.untilClosed()
            #expect(rest.isEmpty)
        }
    }

    @Test func `abandoned connections do no harm`() async throws {
        try await SharedServer.use { server in
            for text in ["", "G", "GET /healthz HTTP/1.1\r\nHost:", "POST /files HTTP/1.1\r\n"] {
                for isReset in [false, true] {
                    let connection = try await server.connect()
                    try await connection.send(text)
                    try await connection.close(resetting: isReset)
                }
            }
        }
    }

    @Test(arguments: ["", "GET /heal", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"])
    func `a connection without a complete request is closed after the idle timeout`(text: String)
        async throws
    {
        try await withServer { configuration in
            // Long enough for the test's own requests on a busy machine.
            configuration.idleTimeout = .seconds(3)
        } _: { server in
            let connection = try await server.connect()
            try await connection.send(text)
            let rest = try await connection.untilClosed()
            #expect(rest.isEmpty)
            try await expectAlive(server)
        }
    }

    /// The server judges the rate of a body over ten seconds.
    @Test func `a body below the minimum rate is cut, and its bytes are kept`() async throws {
        try await withServer { configuration in
            configuration.minBodyBytesPerSecond = 1000
        } _: { server in
            let upload = try await server.begin(sampleBytes(2500))
            let put = upload.put(0)
            let connection = try await server.connect()
            try await connection.send(put.head + upload.chunk(0)[..<600])
            let answer = try await connection.answer()
            try expectProblem(answer, .requestTimeout)
            let status = try await server.status(of: upload)
            #expect(status.partialChunks == [PartialChunk(index: 0, receivedBytes: 600)])
            #expect(try await server.ask(upload.put(0, from: 600)).status == 201)
        }
    }

    @Test func `at most the allowed number of bodies is written at once`() async throws {
        try await withServer { configuration in
            configuration.engine.maxConcurrentWrites = 2
        } _: { server in
            let upload = try await server.begin(sampleBytes(3500))
            let first = try await server.hold(0, of: upload)
            let second = try await server.hold(1, of: upload)
            try expectProblem(try await server.ask(upload.put(2)), .busy)
            try expectProblem(
                try await server.ask(HTTPRequestBytes("POST", "/files", body: [1])), .busy)
            try await first.send(upload.chunk(0))
            #expect(try await first.answer().status == 201)
            #expect(try await server.ask(upload.put(2)).status == 201)
            try await second.send(upload.chunk(1))
            #expect(try await second.answer().status == 201)
            #expect(try await server.status(of: upload).receivedChunks == [0, 1, 2])
        }
    }
}
