import KedgeServer
import KedgeTesting
import Logging
import Testing

/// The server has no identities, so it serves this machine alone.
@Suite(.timeLimit(.minutes(1))) struct LoopbackTests {
    private static func service(on host: String) async throws {
        try await withServer { server in
            var configuration = server.fixture.configuration
            configuration.host = host
            _ = try KedgeService(
                engine: server.engine, configuration: configuration,
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
}
