import HTTPTypes
import KedgeClient
import KedgeLocks
import KedgeModel
import Testing

/// Exchanges with a server in memory: credentials on the way through redirects, limits of bodies.
struct ServerExchangeTests {
    private let server = FakeServer()
    private let start = FakeServer.base + "/plain/a"

    /// Sends a request to an address that redirects to another origin, which redirects back.
    private func get(_ policy: RedirectPolicy) async throws {
        server.state.withLock { state in
            state.plain["a"] = FakeServer.Plain(
                bytes: [], redirect: "http://elsewhere.test/plain/b")
            state.plain["b"] = FakeServer.Plain(
                bytes: [], redirect: FakeServer.base + "/plain/c")
            state.plain["c"] = FakeServer.Plain(bytes: [1])
        }
        let exchange = ServerExchange(
            credentials: ServerCredentials(home: FakeServer.base, token: "hush"),
            transport: server)
        _ = try await exchange.head(of: ServerCall("get file", .get, start, redirects: policy))
    }

    @Test func `the token is left out at another origin, and attached again at its own`()
        async throws
    {
        try await get(.followedSecurely)
        let seen = server.state.withLock { $0.seen }
        #expect(
            seen.map(\.url) == [
                start, "http://elsewhere.test/plain/b", FakeServer.base + "/plain/c",
            ])
        #expect(seen.map { $0.fields[.authorization] } == ["Bearer hush", nil, "Bearer hush"])
    }

    @Test(arguments: [RedirectPolicy.refused, .refusedAsForeign])
    func `a refused redirect sends no further request`(policy: RedirectPolicy) async {
        do {
            try await get(policy)
            Issue.record("the redirect was followed")
        } catch {
            #expect((error as? RequestFailure)?.code == .redirected)
        }
        #expect(server.state.withLock { $0.seen.map(\.url) } == [start])
    }

    /// Policy, status, size of the body, bytes after which it breaks off, bytes that are read: nil
    /// for an error.
    static let bodies: [(BodyPolicy, Int, Int, Int?, Int?)] = [
        (.whole(maxByteCount: 100), 200, 100, nil, 100),
        (.whole(maxByteCount: 100), 200, 101, nil, nil),
        (.whole(maxByteCount: 100), 200, 100, 50, nil),
        (.whole(maxByteCount: 100), 404, 65_536, nil, 65_536),
        (.whole(maxByteCount: 100), 404, 65_537, nil, 0),
        (.whole(maxByteCount: 100), 404, 100, 50, 0),
        (.beginning, 200, 65_537, nil, 65_536),
        (.beginning, 404, 100, 50, 50),
        (.wholeOrNothing(maxByteCount: 100), 404, 100, nil, 100),
        (.wholeOrNothing(maxByteCount: 100), 404, 101, nil, 0),
        (.wholeOrNothing(maxByteCount: 100), 200, 100, 50, nil),
    ]

    @Test(arguments: bodies)
    func `as much of a body is read as the policy says`(
        policy: BodyPolicy, status: Int, byteCount: Int, cutsAfter: Int?, expected: Int?
    ) async {
        var reply = Reply(status: status, body: [UInt8](repeating: 1, count: byteCount))
        reply.cutsAfter = cutsAfter
        // An error counts as no body.
        let body = try? await policy.read(Self.head(status, reply.response().body))
        #expect(body?.count == expected)
    }

    @Test(
        arguments: [
            BodyPolicy.whole(maxByteCount: 100), .beginning, .wholeOrNothing(maxByteCount: 100),
        ], [200, 404])
    func `a canceled read is an error for every policy`(policy: BodyPolicy, status: Int) async {
        let body = TransportResponseBody { () async throws(TransportError) -> [UInt8]? in
            throw TransportError(.canceled)
        }
        await #expect(throws: TransportError.self) {
            _ = try await policy.read(Self.head(status, body))
        }
    }

    private static func head(_ status: Int, _ body: TransportResponseBody) -> ServerReply {
        ServerReply(
            status: status, headerFields: [:], body: body, url: "http://kedge.test/",
            hasCredentials: false)
    }
}
