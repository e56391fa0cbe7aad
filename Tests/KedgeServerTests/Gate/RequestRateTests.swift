import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Rates of requests over real connections. The rates are low, so that a slow machine cannot keep
/// below them.
@Suite(.timeLimit(.minutes(1))) struct RequestRateTests {
    private static func withRates(
        _ configure: (inout RateSettings) -> Void, _ body: (RunningServer) async throws -> Void
    ) async throws {
        var rates = RateSettings()
        configure(&rates)
        let proxies = try #require(TrustedProxies(text: "127.0.0.1"))
        try await withServer { [rates] in
            $0.identityMode = .tokens
            $0.trustedProxies = proxies
            $0.rates = rates
        } _: { server in
            try await body(server)
        }
    }

    private static func expectLimited(
        _ answer: HTTPAnswer, _ reason: String, _ location: SourceLocation = #_sourceLocation
    ) throws {
        let problem = try expectProblem(answer, .rateLimited, location)
        #expect(problem.reason == reason, sourceLocation: location)
        let wait = answer.field("Retry-After").flatMap { Int($0) } ?? 0
        #expect((1...60).contains(wait), sourceLocation: location)
    }

    @Test func `an owner begins so many uploads in a minute, by any protocol`() async throws {
        try await Self.withRates {
            $0.createsPerMinute = 2
        } _: { server in
            let alice = try await server.makeToken(owner: "alice")
            let bob = try await server.makeToken(owner: "bob")
            func create(_ token: APIToken) async throws -> HTTPAnswer {
                try await server.ask(
                    .createSession(.init(fileName: "a", fileSize: 1), token.fields))
            }
            #expect(try await create(alice).status == 201)
            let tus = alice.fields + [("Upload-Length", "1")]
            #expect(try await server.ask(.tus("POST", "/tus/", tus)).status == 201)
            try Self.expectLimited(try await create(alice), "creates")
            let refused = try await server.ask(.tus("POST", "/tus/", tus))
            let problem = try expectProblem(refused, .unavailable)
            #expect(problem.reason == "creates")
            #expect(refused.field("Retry-After").flatMap { Int($0) } ?? 0 > 1)
            #expect(refused.field("Tus-Resumable") == "1.0.0")
            // Other requests and other owners are not affected.
            #expect(try await server.list(alice).status == 200)
            #expect(try await create(bob).status == 201)
        }
    }

    @Test(arguments: ResumableClient.all)
    func `an IETF client above a rate gets a status after which it tries again`(
        client: ResumableClient
    ) async throws {
        try await Self.withRates {
            $0.createsPerMinute = 1
        } _: { server in
            let token = try await server.makeToken()
            let request = client.create([1, 2], completes: true, token.fields)
            #expect(try await server.askResumable(request).status == 201)
            let refused = try await server.askResumable(request)
            #expect(try expectProblem(refused, .unavailable).reason == "creates")
            #expect(refused.field("Retry-After").flatMap { Int($0) } ?? 0 > 1)
        }
    }

    @Test func `an owner makes so many requests in a second`() async throws {
        try await Self.withRates {
            $0.requestsPerSecond = 1
        } _: { server in
            let token = try await server.makeToken()
            let connection = try await server.connect()
            let request = HTTPRequestBytes("GET", "/files", token.fields)
            var answers: [HTTPAnswer] = []
            for _ in 0..<50 { answers.append(try await connection.ask(request)) }
            #expect(answers.first?.status == 200)
            let limited = try #require(answers.first { $0.status == 429 })
            try Self.expectLimited(limited, "requests")
            // Public routes have no owner.
            #expect(try await server.get("/healthz").status == 200)
        }
    }

    @Test func `a missing scope is reported before the rate`() async throws {
        try await Self.withRates {
            $0.createsPerMinute = 1
        } _: { server in
            let reader = try await server.makeToken([.filesList])
            for _ in 0..<3 {
                let answer = try await server.ask(
                    .createSession(.init(fileName: "a", fileSize: 1), reader.fields))
                try expectProblem(answer, .forbidden)
            }
        }
    }

    @Test func `a network with too many wrong credentials waits, and no other one`() async throws {
        try await Self.withRates {
            $0.failedAuthenticationsPerSecond = 1
        } _: { server in
            let token = try await server.makeToken()
            func ask(_ fields: [(String, String)], from address: String) async throws -> HTTPAnswer
            {
                try await server.get("/files", fields + [("X-Forwarded-For", address)])
            }
            var statuses: [Int] = []
            for _ in 0..<100 {
                statuses.append(
                    try await ask(APIToken.generate().fields, from: "203.0.113.5").status)
            }
            #expect(statuses.prefix(5).allSatisfy { $0 == 401 })
            #expect(statuses.contains(429))
            #expect(try await ask(token.fields, from: "203.0.113.6").status == 200)
            // The right credential works again when the wait is over.
            let works = try await eventually {
                try await ask(token.fields, from: "203.0.113.5").status == 200
            }
            #expect(works)
        }
    }

    @Test func `addresses of one IPv6 network count together`() async throws {
        try await Self.withRates {
            $0.failedAuthenticationsPerSecond = 1
        } _: { server in
            var statuses: [Int] = []
            for number in 0..<100 {
                let address = "2001:db8::\(String(number, radix: 16))"
                let fields = APIToken.generate().fields + [("X-Forwarded-For", address)]
                statuses.append(try await server.get("/files", fields).status)
            }
            #expect(statuses.contains(429))
        }
    }

    @Test func `requests without a credential do not count as wrong ones`() async throws {
        try await Self.withRates {
            $0.failedAuthenticationsPerSecond = 1
        } _: { server in
            let client = [("X-Forwarded-For", "203.0.113.5")]
            for _ in 0..<30 { #expect(try await server.get("/files", client).status == 401) }
            let token = try await server.makeToken()
            #expect(try await server.get("/files", token.fields + client).status == 200)
        }
    }

    @Test func `wrong credentials do not lock out the clients of a proxy without addresses`()
        async throws
    {
        try await Self.withRates {
            $0.failedAuthenticationsPerSecond = 1
        } _: { server async throws in
            for _ in 0..<30 {
                #expect(try await server.list(APIToken.generate()).status == 401)
            }
            #expect(try await server.list(try await server.makeToken()).status == 200)
        }
    }

    @Test(
        arguments: [
            ("203.0.113.5", [[]], "203.0.113.5"),
            ("127.0.0.1", [[]], nil), ("127.9.9.9", [[]], nil), ("::1", [[]], nil),
            ("10.0.0.1", [[]], nil), ("10.0.0.1", [["198.51.100.7"]], "198.51.100.7"),
            ("10.0.0.1", [["198.51.100.7, 10.0.0.2"]], "198.51.100.7"),
            ("10.0.0.1", [["10.0.0.2"]], nil), ("10.0.0.1", [["unknown"]], nil),
            ("203.0.113.5", [["198.51.100.7"]], "203.0.113.5"),
        ] as [(String, [[String]], String?)])
    func `the network of a client is none where many clients share the address`(
        peer: String, forwarded: [[String]], network: String?
    ) throws {
        let proxies = try #require(TrustedProxies(text: "10.0.0.0/8"))
        #expect(
            proxies.network(peer: Self.bytes(peer), forwarded: forwarded.flatMap { $0 })?.network
                == network)
    }

    private static func bytes(_ address: String) -> [UInt8] {
        address == "::1"
            ? [UInt8](repeating: 0, count: 15) + [1]
            : address.split(separator: ".").compactMap { UInt8($0) }
    }

    @Test func `requests above a rate are counted in the metrics`() async throws {
        try await Self.withRates {
            $0.createsPerMinute = 1
        } _: { server in
            let token = try await server.makeToken(Set(Scope.allCases))
            for _ in 0..<3 {
                _ = try await server.ask(
                    .createSession(.init(fileName: "a", fileSize: 1), token.fields))
            }
            let text = String(
                decoding: try await server.get("/metrics", token.fields).body, as: UTF8.self)
            #expect(text.contains(#"kedge_rate_limited_total{kind="creates"} 2"#))
        }
    }
}
