import KedgeEngine
import KedgeModel
import KedgeServer
import KedgeTesting
import Logging
import Testing

struct TrustedProxiesTests {
    private static func address(_ bytes: UInt8...) -> ClientAddress {
        ClientAddress(bytes: bytes) ?? .unknown
    }

    private static let proxies = TrustedProxies(text: "127.0.0.1, ::1,10.0.0.0/8")

    @Test(
        arguments: [
            (["1.2.3.4"], [1, 2, 3, 4]),
            (["9.9.9.9, 1.2.3.4"], [1, 2, 3, 4]),
            (["9.9.9.9", "1.2.3.4"], [1, 2, 3, 4]),
            (["1.2.3.4:5678"], [1, 2, 3, 4]),
            (["1.2.3.4, 10.1.2.3"], [1, 2, 3, 4]),
            (["unknown, 10.1.2.3"], [10, 1, 2, 3]),
            (["1.2.3.4, unknown"], [127, 0, 0, 1]),
            (["1.2.3.4, "], [127, 0, 0, 1]),
            ([], [127, 0, 0, 1]),
            (["[::ffff:1.2.3.4]:80"], [1, 2, 3, 4]),
        ] as [([String], [UInt8])])
    func `the last entry that a trusted peer added is the client`(
        fields: [String], client: [UInt8]
    ) throws {
        let proxies = try #require(Self.proxies)
        #expect(
            proxies.client(peer: [127, 0, 0, 1], forwarded: fields) == ClientAddress(bytes: client))
    }

    @Test(arguments: [("", 1), ("127.0.0.1", 0)])
    func `an ignored X-Forwarded-For is logged once`(trusted: String, count: Int) async throws {
        let proxies = try #require(TrustedProxies(text: trusted))
        try await withServer {
            $0.trustedProxies = proxies
        } _: { server in
            for _ in 0..<3 {
                _ = try await server.get("/files", [("X-Forwarded-For", "1.2.3.4")])
            }
            let warnings = server.fixture.log.lines.filter {
                $0.level == .warning && $0.metadata["peer"] != nil
            }
            #expect(warnings.count == count)
        }
    }

    @Test func `the X-Forwarded-For of an untrusted peer is ignored`() throws {
        let peer: [UInt8] = [8, 8, 8, 8]
        for proxies in [try #require(Self.proxies), TrustedProxies.none] {
            #expect(
                proxies.client(peer: peer, forwarded: ["1.2.3.4"]) == ClientAddress(bytes: peer))
        }
        #expect(TrustedProxies.none.client(peer: nil, forwarded: ["1.2.3.4"]) == .unknown)
    }

    @Test(arguments: [
        "localhost", "127.0.0.1/33", "127.0.0.1/-1", "127.0.0.1/x", "::1/129", "1.2.3", "*",
        "fe80::1%lo", "127.0.0.1/",
    ])
    func `a malformed address of a trusted proxy is refused`(text: String) {
        #expect(TrustedProxies(text: text) == nil)
    }
}
