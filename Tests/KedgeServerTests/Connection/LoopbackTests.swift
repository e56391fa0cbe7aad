import KedgeServer
import KedgeTesting
import Logging
import Testing

/// Without identities, the server serves this machine alone. With tokens, it serves other machines
/// through a proxy that ends TLS.
@Suite(.timeLimit(.minutes(1))) struct LoopbackTests {
    private static func service(
        on host: String, _ configure: (inout ServiceConfiguration) -> Void = { _ in }
    ) async throws {
        try await withServer { server in
            var configuration = server.fixture.configuration
            configuration.host = host
            configure(&configuration)
            _ = try KedgeService(
                engine: server.engine, configuration: configuration, tokens: server.tokens,
                logger: server.fixture.log.logger())
        }
    }

    @Test(arguments: ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
    func `listening on a loopback address is allowed`(host: String) async throws {
        try await Self.service(on: host)
    }

    @Test(arguments: [
        "0.0.0.0", "::", "", "192.168.1.1", "10.0.0.127", "kedge.example", "localhost.example",
        "::ffff:0.0.0.0", "127.evil.example", "127.", "127.0.0.1.example", "127.0.0.256",
        "127.0.0.1.1", "127.0.0.١",
    ])
    func `listening on any other address is refused`(host: String) async throws {
        await #expect(throws: ConfigurationError.self) { try await Self.service(on: host) }
    }

    @Test func `listening beyond loopback needs tokens, a trusted proxy and consent`() async throws
    {
        let proxies = try #require(TrustedProxies(text: "192.0.2.1"))
        for mode in [IdentityMode.anonymous, .tokens] {
            for isAccepted in [false, true] {
                for hasProxy in [false, true] {
                    let isAllowed = mode == .tokens && isAccepted && hasProxy
                    let start = {
                        try await Self.service(on: "0.0.0.0") {
                            $0.identityMode = mode
                            $0.acceptsPlainHTTP = isAccepted
                            $0.trustedProxies = hasProxy ? proxies : .none
                        }
                    }
                    if isAllowed {
                        try await start()
                    } else {
                        await #expect(throws: ConfigurationError.self) { try await start() }
                    }
                }
            }
        }
    }
}
