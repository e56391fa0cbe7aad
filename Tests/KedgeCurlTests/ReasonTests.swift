import HTTPTypes
import Testing

@testable import KedgeCurl

/// Why there was no answer, as far as it can be told.
@Suite(.timeLimit(.minutes(1)))
struct ReasonTests {
    private let client = CurlClient.forTests(stallTimeout: .milliseconds(200))

    private func reason(_ url: String) async throws -> CurlError.Reason {
        try #require(
            await #expect(throws: CurlError.self) {
                try await client.send(.init(method: .get, url: url))
            }
        ).reason
    }

    @Test func `a port where nobody listens refuses`() async throws {
        let port = LoopbackServer.closedPort()
        let error = try #require(
            await #expect(throws: CurlError.self) {
                try await client.send(.init(method: .get, url: "http://127.0.0.1:\(port)/"))
            })
        #expect(error.reason == .refused)
        #expect(error.port == Int(port))
    }

    // An empty label is refused by every resolver, also without a network.
    @Test func `a name that there cannot be is not found`() async throws {
        #expect(try await reason("http://a..b/") == .nameNotFound)
    }

    @Test(arguments: [(true, CurlError.Reason.reset), (false, .closed)])
    func `an end before the answer says how it came`(
        isReset: Bool, reason: CurlError.Reason
    ) async throws {
        let server = LoopbackServer { connection in
            _ = connection.readRequest()
            if isReset { connection.resetOnClose() }
        }
        #expect(try await self.reason(server.url()) == reason)
    }

    @Test func `silence is a stall`() async throws {
        let server = LoopbackServer { $0.waitUntilPeerCloses() }
        #expect(try await reason(server.url()) == .stalled)
    }

    @Test func `a peer without TLS refuses it, and one that hangs up is reset`() async throws {
        let plain = LoopbackServer { $0.send("HTTP/1.1 200 OK\r\n\r\n") }
        #expect(try await reason("https://127.0.0.1:\(plain.port)/") == .tlsRefused)
        let cut = LoopbackServer { $0.resetOnClose() }
        #expect(try await reason("https://127.0.0.1:\(cut.port)/") == .reset)
    }

    @Test(
        arguments: [
            (0, CurlError.Reason.certificateWrongHost), (1, .certificateWrongHost),
            (62, .certificateWrongHost),
            (9, .certificateNotYetValid), (10, .certificateExpired), (18, .certificateUntrusted),
            (20, .certificateUntrusted),
        ])
    func `a certificate is refused for what OpenSSL found`(
        verification: Int, reason: CurlError.Reason
    ) {
        #expect(CurlFailure.certificateReason(verification) == reason)
    }
}
