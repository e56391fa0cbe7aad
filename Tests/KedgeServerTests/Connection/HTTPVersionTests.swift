import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Clients of HTTP/1.0, which read until the connection ends, and last requests of a connection.
@Suite(.timeLimit(.minutes(1))) struct HTTPVersionTests {
    private static func asking(
        _ text: String, on server: RunningServer
    ) async throws -> HTTPAnswer {
        let connection = try await server.connect()
        try await connection.send(text)
        let answer = try await connection.answer()
        #expect(try await connection.untilClosed().isEmpty)
        return answer
    }

    /// The server keeps no connection open before HTTP/1.1, so asking for that changes nothing.
    @Test(arguments: ["", "Connection: keep-alive\r\n", "Connection: close\r\n"])
    func `a request of HTTP 1 0 is answered, and the connection ends`(
        field: String
    ) async throws {
        try await SharedServer.use { server in
            let start = "GET /healthz HTTP/1.0\r\nHost: localhost\r\n"
            let answer = try await Self.asking(start + field + "\r\n", on: server)
            #expect(answer.status == 200)
            #expect(answer.field("Connection") == "close")
        }
    }

    @Test func `a body of HTTP 1 0 is accepted`() async throws {
        try await SharedServer.use { server in
            let answer = try await Self.asking(
                "POST /files HTTP/1.0\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc",
                on: server)
            #expect(try answer.decoded(FinalizeResponse.self).size == 3)
        }
    }

    /// RFC 9110 section 10.1.1: the client would take a 100 response for the final one.
    @Test func `a client of HTTP 1 0 gets no 100 Continue`() async throws {
        try await SharedServer.use { server in
            let answer = try await Self.asking(
                "POST /files HTTP/1.0\r\nHost: localhost\r\nContent-Length: 3\r\n"
                    + "Expect: 100-continue\r\n\r\nabc", on: server)
            #expect(answer.status == 201)
        }
    }

    /// RFC 9112 section 9.6: the option in any letter case, also among other options.
    @Test(arguments: ["close", "Close", "keep-alive, close"])
    func `Connection close is recognized in every form`(value: String) async throws {
        try await SharedServer.use { server in
            let answer = try await Self.asking(
                "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: \(value)\r\n\r\n",
                on: server)
            #expect(answer.status == 200)
            #expect(answer.field("Connection") == "close")
        }
    }

    /// No request may follow one that announces that it is the last.
    @Test(arguments: ["GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "\0\0\0\0\r\n\r\n"])
    func `bytes after the last request are ignored`(rest: String) async throws {
        try await SharedServer.use { server in
            for last in [
                "GET /healthz HTTP/1.0\r\n", "GET /healthz HTTP/1.1\r\nConnection: close\r\n",
            ] {
                let answer = try await Self.asking(
                    last + "Host: localhost\r\n\r\n" + rest, on: server)
                #expect(answer.status == 200)
            }
        }
    }

    /// The limit is one connection: the server answers the second once the first has gone, long
    /// before the idle timeout.
    @Test(arguments: [
        "GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /heal thz HTTP/1.1\r\n\r\n",
        "POST /files HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
    ])
    func `a client cannot hold its connection open after the last answer`(text: String) async throws
    {
        try await withServer { configuration in
            configuration.maxConnections = 1
            configuration.idleTimeout = .seconds(600)
        } _: { server in
            let first = try await server.connect()
            try await first.send(text)
            _ = try await first.answer()
            try await expectAlive(server)
            #expect(try await first.untilClosed().isEmpty)
        }
    }

    /// A client may end its side after the request and read at leisure.
    @Test(arguments: ["HTTP/1.0", "HTTP/1.1"])
    func `an answer reaches a client that has ended its side`(version: String) async throws {
        try await SharedServer.use { server in
            let content = [UInt8](repeating: 7, count: 8 << 20)
            let file = try await server.ask(HTTPRequestBytes("POST", "/files", body: content))
                .decoded(FinalizeResponse.self)
            let connection = try await server.connect()
            try await connection.send(
                "GET /files/\(file.remoteFileId) \(version)\r\nHost: localhost\r\n\r\n")
            try await connection.finishSending()
            let answer = try await connection.answer()
            #expect(answer.body == content)
            #expect(try await connection.untilClosed().isEmpty)
        }
    }
}
