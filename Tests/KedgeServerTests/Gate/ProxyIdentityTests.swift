import Glibc
import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting
import Logging
import Testing

/// Identities that a proxy states in a request field.
@Suite(.timeLimit(.minutes(1))) struct ProxyIdentityTests {
    private static let secret = "0123456789abcdef-secret"

    /// Lends a server with a proxy that has to send the secret.
    private static func withSecretServer(
        _ body: (RunningServer) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("\(secret)\n", to: "proxy.secret")
        #expect(chmod(path, 0o600) == 0)
        try await withProxyServer(secretFile: path, body)
        withExtendedLifetime(directory) {}
    }

    @Test func `a trusted proxy names the owner`() async throws {
        try await withProxyServer { server in
            let created = try await server.ask(
                .createSession(.init(fileName: "a.bin", fileSize: 10), [proxyUser("alice")]))
            #expect(created.status == 201)
            let path = try #require(created.field("Location"))
            #expect(try await server.get(path, [proxyUser("alice")]).status == 200)
            try expectProblem(try await server.get(path, [proxyUser("bob")]), .sessionNotFound)
            let token = try await server.makeToken(owner: "alice")
            #expect(try await server.get(path, token.fields).status == 200)
            let line = server.fixture.log.lines.first { $0.metadata["principal"] == "proxy" }
            #expect(line?.metadata["owner"] == "alice")
        }
    }

    @Test func `the owner has the scopes of the setting`() async throws {
        try await withProxyServer(scopes: [.filesList]) { server in
            #expect(try await server.get("/files", [proxyUser("alice")]).status == 200)
            let created = try await server.ask(
                .createSession(.init(fileName: "a", fileSize: 1), [proxyUser("alice")]))
            try expectProblem(created, .forbidden)
        }
    }

    @Test func `a request without the field needs another credential`() async throws {
        try await withProxyServer { server in
            try expectProblem(try await server.get("/files"), .unauthenticated)
            let token = try await server.makeToken()
            #expect(try await server.list(token).status == 200)
        }
    }

    @Test func `a token decides before the field`() async throws {
        try await withProxyServer { server in
            let token = try await server.makeToken([.filesList], owner: "bob")
            #expect(
                try await server.get("/files", token.fields + [proxyUser("alice")]).status == 200)
            let line = server.fixture.log.lines.last { $0.metadata["principal"] != nil }
            #expect(line?.metadata["owner"] == "bob")
            let wrong = APIToken.generate()
            try expectProblem(
                try await server.get("/files", wrong.fields + [proxyUser("alice")]),
                .unauthenticated)
        }
    }

    @Test(arguments: ["/files", "/healthz", "/"])
    func `the field of another peer is refused, and logged once`(path: String) async throws {
        try await withProxyServer(trusted: "192.0.2.1") { server in
            let token = try await server.makeToken()
            for _ in 0..<3 {
                for fields in [[proxyUser("alice")], token.fields + [proxyUser("alice")]] {
                    try expectProblem(try await server.get(path, fields), .badRequest)
                }
            }
            let warnings = server.fixture.log.lines.filter {
                $0.level == .warning && $0.metadata["field"] == "X-Forwarded-User"
            }
            #expect(warnings.count == 1)
            #expect(warnings.first?.metadata["peer"] == "127.0.0.1")
        }
    }

    @Test func `a forwarded address does not make its peer a trusted proxy`() async throws {
        try await withProxyServer(trusted: "192.0.2.1") { server in
            let fields = [proxyUser("alice"), ("X-Forwarded-For", "192.0.2.1")]
            try expectProblem(try await server.get("/files", fields), .badRequest)
        }
    }

    @Test(arguments: [
        "", String(repeating: "a", count: 256), "al\u{e9}ce", "a\tb",
    ])
    func `text that is no owner is refused`(name: String) async throws {
        try await withProxyServer { server in
            try expectProblem(try await server.get("/files", [proxyUser(name)]), .badRequest)
        }
    }

    @Test func `the anonymous owner is refused`() async throws {
        try await withProxyServer { server in
            try expectProblem(
                try await server.get("/files", [proxyUser("anonymous")]), .unauthenticated)
            #expect(try await server.get("/files", [proxyUser("Anonymous")]).status == 200)
        }
    }

    @Test func `a repeated field is refused`() async throws {
        try await withProxyServer { server in
            let token = try await server.makeToken()
            for fields in [[], token.fields] as [[(String, String)]] {
                try expectProblem(
                    try await server.get(
                        "/files", fields + [proxyUser("alice"), proxyUser("bob")]), .badRequest)
            }
        }
    }

    @Test func `the secret is required, compared whole and not logged`() async throws {
        try await Self.withSecretServer { server in
            let name = "X-Kedge-Proxy-Secret"
            let right = (name, Self.secret)
            #expect(try await server.get("/files", [proxyUser("alice"), right]).status == 200)
            let wrong = [
                "", Self.secret + "x", String(Self.secret.dropLast()), Self.secret.uppercased(),
            ]
            let all: [[(String, String)]] = [[], [right, right]] + wrong.map { [(name, $0)] }
            for fields in all {
                try expectProblem(
                    try await server.get("/files", [proxyUser("alice")] + fields),
                    .unauthenticated)
            }
            // The secret proves the proxy, and is no identity.
            try expectProblem(try await server.get("/files", [right]), .unauthenticated)
            let log = server.fixture.log.lines.map { "\($0.metadata)" }.joined()
            #expect(!log.contains(Self.secret))
        }
    }

    @Test(
        arguments: [
            (0o640, "0123456789abcdef"), (0o604, "0123456789abcdef"), (0o600, "short"),
            (0o600, "0123456789 abcdef"), (0o600, "0123456789abcdef\n\n"), (0o600, ""),
            (0o600, String(repeating: "a", count: 1025)),
        ] as [(UInt32, String)])
    func `an unsafe or malformed secret file is refused at the start`(
        mode: UInt32, text: String
    ) async throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(text, to: "proxy.secret")
        #expect(chmod(path, mode) == 0)
        let error = await #expect(throws: ConfigurationError.self) {
            try await withProxyServer(secretFile: path) { _ in }
        }
        #expect(error?.description.contains(path) == true)
        #expect(text.isEmpty || error?.description.contains(text) == false)
        withExtendedLifetime(directory) {}
    }

    @Test func `a missing file, a directory and a pipe are refused at the start`() async throws {
        let directory = try TemporaryDirectory()
        let pipe = "\(directory.path)/pipe"
        #expect(mkfifo(pipe, 0o600) == 0)
        for path in ["\(directory.path)/none", directory.path, pipe] {
            await #expect(throws: ConfigurationError.self) {
                try await withProxyServer(secretFile: path) { _ in }
            }
        }
        withExtendedLifetime(directory) {}
    }

    @Test func `the field needs tokens and a named proxy`() async throws {
        await #expect(throws: ConfigurationError.self) {
            try await withProxyServer(trusted: "") { _ in }
        }
        let identity = try #require(
            ProxyIdentitySettings(header: "X-Forwarded-User", scopes: [.filesRead]))
        let proxies = try #require(TrustedProxies(text: "127.0.0.1"))
        await #expect(throws: ConfigurationError.self) {
            try await withServer {
                $0.trustedProxies = proxies
                $0.proxyIdentity = identity
            } _: { _ in
            }
        }
    }

    @Test(arguments: ["0.0.0.0/0", "127.0.0.1,::/0"])
    func `a proxy at any address needs the secret`(trusted: String) async throws {
        await #expect(throws: ConfigurationError.self) {
            try await withProxyServer(trusted: trusted) { _ in }
        }
    }

    @Test func `pages of every origin are refused where a proxy knows the user`() async throws {
        let identity = try #require(
            ProxyIdentitySettings(header: "X-Forwarded-User", scopes: [.filesRead]))
        let proxies = try #require(TrustedProxies(text: "127.0.0.1"))
        await #expect(throws: ConfigurationError.self) {
            try await withServer {
                $0.identityMode = .tokens
                $0.trustedProxies = proxies
                $0.proxyIdentity = identity
                $0.cors = .open
            } _: { _ in
            }
        }
    }

    @Test(arguments: ["Authorization", "Cookie", "x-forwarded-for", "Kedge-Owner", "a b", ""])
    func `a field with another meaning names no owner`(header: String) {
        #expect(ProxyIdentitySettings(header: header, scopes: [.filesRead]) == nil)
    }

    @Test(
        arguments: [
            [.proxySecretFile: "/secret"], [.proxyIdentityHeader: "a b"],
            [.proxyIdentityHeader: "X-User", .proxyScopes: "uploads:all"], [.proxyScopes: ""],
        ] as [[ConfigurationKey: String]])
    func `a mistake in the settings is refused`(flags: [ConfigurationKey: String]) async throws {
        let loader = try await ConfigurationLoader(flags: flags, environment: [:], file: nil)
        let error = #expect(throws: ConfigurationError.self) { _ = try loader.configuration() }
        #expect(error?.description.contains("proxy.") == true)
    }
}
