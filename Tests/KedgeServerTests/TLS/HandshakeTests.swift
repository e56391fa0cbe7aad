import KedgeServer
import KedgeTLS
import KedgeTesting
import Logging
import Testing

/// Connections that do not get as far as a request.
@Suite(.timeLimit(.minutes(1))) struct HandshakeTests {
    /// openssl tries the old version only if it may use weak ciphers.
    private static func agrees(
        _ version: String, with secure: SecureServer
    ) async throws -> Bool {
        let finished = try await secure.shakeHands(
            ["-\(version)", "-cipher", "ALL:@SECLEVEL=0"])
        return finished.output.contains("Verify return code: 0")
            && !finished.output.contains("Cipher is (NONE)")
    }

    @Test func `TLS 1.2 and 1.3 are accepted, and older versions are refused`() async throws {
        try await withSecureServer { secure async throws in
            #expect(try await Self.agrees("tls1_3", with: secure))
            #expect(try await Self.agrees("tls1_2", with: secure))
            #expect(try await !Self.agrees("tls1_1", with: secure))
            #expect(try await !Self.agrees("tls1", with: secure))
        }
    }

    @Test func `TLS 1.2 is refused if the minimum is 1.3`() async throws {
        try await withSecureServer(.version13) { secure async throws in
            #expect(try await Self.agrees("tls1_3", with: secure))
            #expect(try await !Self.agrees("tls1_2", with: secure))
        }
    }

    @Test(arguments: ["AES128-SHA", "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES128-SHA256"])
    func `a cipher without forward secrecy or authentication is refused`(
        cipher: String
    ) async throws {
        try await withSecureServer { secure in
            let finished = try await secure.shakeHands(
                ["-tls1_2", "-cipher", "\(cipher):@SECLEVEL=0"])
            #expect(finished.output.contains("Cipher is (NONE)"), "\(finished.output)")
        }
    }

    @Test func `HTTP/1.1 is chosen where a client also offers HTTP/2`() async throws {
        try await withSecureServer { secure in
            let finished = try await secure.shakeHands(["-alpn", "h2,http/1.1"])
            #expect(finished.output.contains("ALPN protocol: http/1.1"))
        }
    }

    @Test(arguments: ["", "\u{16}\u{3}\u{1}\u{2}"])
    func `a handshake that does not come is ended by the limit`(beginning: String) async throws {
        try await withSecureServer {
            $0.handshakeTimeout = .seconds(2)
        } _: { secure in
            let start = ContinuousClock.now
            let silent = try await secure.server.connect()
            try await silent.send(beginning)
            #expect(try await silent.untilClosed().isEmpty)
            #expect(start.duration(to: .now) >= .seconds(1))
            let timeouts = try await secure.metric(
                #"kedge_tls_handshakes_total{outcome="timeout"}"#)
            #expect(timeouts == 1)
        }
    }

    @Test(arguments: [
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "CONNECT localhost:443 HTTP/1.1\r\n\r\n", "\0\0\0\0\0\0\0\0", "SSH-2.0-OpenSSH_9.2\r\n",
    ])
    func `anything but TLS is closed at once, without an answer and without a noisy log`(
        text: String
    ) async throws {
        try await withSecureServer { secure in
            let connection = try await secure.server.connect()
            try await connection.send(text)
            let answer = try await connection.untilClosed()
            #expect(!String(decoding: answer, as: UTF8.self).contains("HTTP/1.1"))
            let failures = try await secure.metric(
                #"kedge_tls_handshakes_total{outcome="failed"}"#)
            #expect(failures == 1)
            #expect(!secure.server.fixture.log.lines.contains { $0.level >= .warning })
        }
    }

    @Test func `connections during a handshake do not delay shutdown`() async throws {
        try await withSecureServer { secure in
            let silent = try await secure.server.connect()
            let start = ContinuousClock.now
            await secure.server.beginStopping()
            try await secure.server.untilEnded()
            #expect(start.duration(to: .now) < .seconds(8))
            try await silent.close()
        }
    }

    @Test func `outcomes are counted from zero`() async throws {
        try await withSecureServer { secure in
            for outcome in HandshakeOutcome.allCases where outcome != .completed {
                let count = try await secure.metric(
                    #"kedge_tls_handshakes_total{outcome="\#(outcome.rawValue)"}"#)
                #expect(count == 0)
            }
            let completed = try await secure.metric(
                #"kedge_tls_handshakes_total{outcome="completed"}"#)
            #expect(completed == Double(HandshakeOutcome.allCases.count))
        }
    }
}
