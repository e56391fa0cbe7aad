import HTTPTypes
import KedgeCurl
import KedgeTesting
import KedgeTransport
import Testing

/// Refusals of a request whose body the server does not read.
@Suite(.timeLimit(.minutes(1)))
struct RefusalTests {
    private let client = CurlClient.forTests(stallTimeout: .seconds(5))

    /// Sends a body that fits into the sockets' buffers, is refused, and sends the next request.
    ///
    /// - Returns: The status of the refusal and the number of the next request's connection.
    private func send(
        _ byteCount: Int64, refusedWith status: String
    ) async throws -> (refusal: Int, connection: String) {
        let connectionCount = Shared(0)
        let isSent = Latch()
        let mayClose = Latch()
        let server = ScriptedServer { connection in
            let number = connectionCount.update {
                $0 += 1
                return $0
            }
            guard number == 1 else {
                _ = connection.readRequest()
                return connection.respond("\(number)")
            }
            _ = connection.readHead()
            isSent.wait()
            connection.send("HTTP/1.1 \(status)\r\nContent-Length: 0\r\n\r\n")
            // Keeps the connection open and reads nothing more.
            mayClose.wait()
        }
        defer { mayClose.open() }
        let refusal = try await client.send(
            .init(
                method: .patch, url: server.url("/refused"),
                body: .source(RepeatedByte(byteCount: byteCount)),
                onBytesSent: { if $0 == byteCount { isSent.open() } }))
        _ = try await refusal.body.collect(upTo: 0)
        let next = try await client.send(.init(method: .get, url: server.url("/next")))
        let text = String(decoding: try await next.body.collect(upTo: 10), as: UTF8.self)
        return (refusal.status, text)
    }

    @Test(arguments: ["404 Not Found", "503 Service Unavailable", "307 Temporary Redirect"])
    func `the next request does not wait behind a body that the server does not read`(
        status: String
    ) async throws {
        let (refusal, connection) = try await send(256 * 1024, refusedWith: status)
        #expect(status.hasPrefix("\(refusal)"))
        #expect(connection == "2")
    }

    @Test func `a refusal of a short body keeps its connection`() async throws {
        let connectionCount = Shared(0)
        let server = ScriptedServer { connection in
            connectionCount.update { $0 += 1 }
            while connection.readRequest() != nil {
                connection.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            }
        }
        for _ in 0..<3 {
            let response = try await client.send(
                .init(
                    method: .post, url: server.url(),
                    body: .source(RepeatedByte(byteCount: 64 * 1024))))
            _ = try await response.body.collect(upTo: 0)
        }
        #expect(connectionCount.value == 1)
    }
}
