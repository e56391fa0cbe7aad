import HTTPTypes
import KedgeCurl
import KedgeTesting
import KedgeTransport
import Testing

/// The reason that an error gives for a missing answer.
@Suite(.timeLimit(.minutes(1)))
struct ReasonTests {
    private let client = CurlClient.forTests(stallTimeout: .milliseconds(200))

    private func reason(_ url: String) async throws -> ConnectionCause {
        let error = await #expect(throws: TransportError.self) {
            try await client.send(.init(method: .get, url: url))
        }
        return try #require(error?.connection).cause
    }

    @Test func `a port without a listener refuses the connection`() async throws {
        let port = try ScriptedServer.closedPort()
        let error = try #require(
            await #expect(throws: TransportError.self) {
                try await client.send(.init(method: .get, url: "http://127.0.0.1:\(port)/"))
            })
        #expect(error.connection?.cause == .refused)
        #expect(error.connection?.port == Int(port))
    }

    // Every resolver refuses an empty label, also without a network.
    @Test func `an impossible host name is not found`() async throws {
        #expect(try await reason("http://a..b/") == .nameNotFound)
    }

    @Test(arguments: [(true, ConnectionCause.reset), (false, .closed)])
    func `a connection that ends before the answer is reported as reset or closed`(
        isReset: Bool, reason: ConnectionCause
    ) async throws {
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            if isReset { connection.resetOnClose() }
        }
        #expect(try await self.reason(server.url()) == reason)
    }

    @Test func `a silent server is reported as stalled`() async throws {
        let server = ScriptedServer { $0.waitUntilPeerCloses() }
        #expect(try await reason(server.url()) == .stalled)
    }

    @Test func `a server without TLS is reported as refusing it, and one that hangs up as reset`()
        async throws
    {
        let plain = ScriptedServer { $0.send("HTTP/1.1 200 OK\r\n\r\n") }
        #expect(try await reason("https://127.0.0.1:\(plain.port)/") == .tlsRefused)
        let cut = ScriptedServer { $0.resetOnClose() }
        #expect(try await reason("https://127.0.0.1:\(cut.port)/") == .reset)
    }

    @Test(
        arguments: [
            (0, ConnectionCause.certificateWrongHost), (1, .certificateWrongHost),
            (62, .certificateWrongHost),
            (9, .certificateNotYetValid), (10, .certificateExpired), (18, .certificateUntrusted),
            (20, .certificateUntrusted),
        ])
    func `a refused certificate has the reason that OpenSSL found`(
        verification: Int, reason: ConnectionCause
    ) {
        #expect(CurlFailure.certificateReason(verification) == reason)
    }
}
