import HTTPTypes
import KedgeCurl
import KedgeTesting
import KedgeTransport
import Testing

/// Failures of servers and networks, and the errors that the caller gets.
@Suite(.timeLimit(.minutes(1)))
struct FailureTests {
    private let client = CurlClient.forTests()

    @Test(arguments: [false, true])
    func `a dropped connection delivers the bytes that arrived, then throws closedEarly`(
        withReset: Bool
    ) async throws {
        let mayClose = Latch()
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            connection.send([UInt8](repeating: 1, count: 300_000))
            guard withReset else { return }
            // A reset overtakes bytes in flight, so it waits until the reader has them.
            mayClose.wait()
            connection.resetOnClose()
        }
        let response = try await client.send(.init(method: .get, url: server.url()))
        var received = 0
        while received < 300_000, let chunk = try await response.body.next() {
            received += chunk.count
        }
        #expect(received == 300_000)
        mayClose.open()
        let (rest, error) = await drain(response.body)
        #expect(rest == 0)
        #expect(error?.curl?.code == .closedEarly)
        #expect(error?.isTransient == true)
    }

    @Test func `a chunked body without its last chunk throws closedEarly`() async throws {
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        }
        let response = try await client.send(.init(method: .get, url: server.url()))
        let (received, error) = await drain(response.body)
        #expect(received == 5)
        #expect(error?.curl?.code == .closedEarly)
    }

    @Test func `a connection closed without an answer throws closedEarly`() async {
        let server = ScriptedServer { _ = $0.readRequest() }
        let request = TransportRequest(method: .get, url: server.url())
        #expect(await failure(of: client, sending: request) == .closedEarly)
    }

    @Test func `a refused connection throws couldNotConnect`() async throws {
        let port = try ScriptedServer.closedPort()
        let url = "http://user:secret@127.0.0.1:\(port)/?key=secret"
        let error = try #require(
            await #expect(throws: TransportError.self) {
                try await client.send(.init(method: .get, url: url))
            })
        #expect(error.curl?.code == .couldNotConnect)
        #expect(error.kind == .offline)
        #expect(error.isTransient)
        #expect(error.connection?.host == "127.0.0.1")
        #expect(!String(reflecting: error).contains("secret"))
    }

    @Test func `a request to a server that never answers throws stalled`() async {
        let server = ScriptedServer { $0.waitUntilPeerCloses() }
        let client = CurlClient.forTests(stallTimeout: .milliseconds(200))
        let request = TransportRequest(method: .get, url: server.url())
        #expect(await failure(of: client, sending: request) == .stalled)
    }

    @Test func `a body that stops arriving delivers its bytes, then throws stalled`() async throws {
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
            connection.waitUntilPeerCloses()
        }
        let client = CurlClient.forTests(stallTimeout: .milliseconds(200))
        let response = try await client.send(.init(method: .get, url: server.url()))
        let (received, error) = await drain(response.body)
        #expect(received == 5)
        #expect(error?.curl?.code == .stalled)
    }

    @Test func `an exchange longer than its timeout throws timedOut`() async {
        let server = ScriptedServer { $0.waitUntilPeerCloses() }
        let request = TransportRequest(method: .get, url: server.url())
            .within(.milliseconds(200))
        #expect(await failure(of: client, sending: request) == .timedOut)
    }

    @Test func `a request that waits for a connection times out as well`() async throws {
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
            connection.waitUntilPeerCloses()
        }
        let client = CurlClient.forTests { $0.maxConnectionsPerHost = 1 }
        let unread = try await client.send(.init(method: .get, url: server.url()))
        let request = TransportRequest(method: .get, url: server.url())
            .within(.milliseconds(100))
        #expect(await failure(of: client, sending: request) == .timedOut)
        // Using the response here keeps its connection taken until then.
        #expect(unread.status == 200)
        withExtendedLifetime(unread.body) {}
    }

    @Test(arguments: ["SSH-2.0-OpenSSH\r\n", "HTTP/1.1 2x0 OK\r\n\r\n"])
    func `an answer that is not HTTP throws protocolError`(_ answer: String) async {
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.send(answer)
        }
        let request = TransportRequest(method: .get, url: server.url())
        #expect(await failure(of: client, sending: request) == .protocolError)
    }

    @Test func `a head beyond its limit throws responseTooLarge`() async {
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.send("HTTP/1.1 200 OK\r\n")
            while connection.send("X-Filler: 0123456789012345678901234567890123456789\r\n") {}
        }
        let request = TransportRequest(method: .get, url: server.url())
        #expect(await failure(of: client, sending: request) == .responseTooLarge)
    }
}
