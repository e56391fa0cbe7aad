import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// The request gate runs before every route: a page in a browser on this machine is not its user.
@Suite(.timeLimit(.minutes(1))) struct HostGateTests {
    private static func asking(
        _ fields: String, on server: RunningServer
    ) async throws -> HTTPAnswer {
        let connection = try await server.connect()
        try await connection.send("GET /files HTTP/1.1\r\n\(fields)\r\n")
        return try await connection.answer()
    }

    @Test(arguments: [
        "localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:8080", "127.8.9.10", "[::1]",
        "[::1]:8080",
    ])
    func `requests for names of this machine are answered`(host: String) async throws {
        try await SharedServer.use { server in
            let answer = try await Self.asking("Host: \(host)\r\n", on: server)
            #expect(answer.status == 200)
        }
    }

    /// DNS rebinding: the page's own name points to this machine.
    @Test(arguments: [
        "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example",
        "127.evil.example", "", "0.0.0.0", "192.168.1.1", "[::2]", "user@localhost",
        "localhost:evil", "localhost:65536", "localhost:80:80", "localhost, localhost",
        "[::1]x", "[::1", "localhost/", "localhost.evil.example:80\\@localhost",
    ])
    func `requests for other names are refused`(host: String) async throws {
        try await SharedServer.use { server in
            let answer = try await Self.asking("Host: \(host)\r\n", on: server)
            #expect(answer.status == 400)
        }
    }

    @Test func `a request without Host is refused`() async throws {
        try await SharedServer.use { server in
            let answer = try await Self.asking("", on: server)
            #expect(answer.status == 400)
        }
    }

    @Test(arguments: [
        "Host: localhost\r\nHost: localhost\r\n", "Host: localhost\r\nhost: evil.example\r\n",
        "Host: evil.example\r\nHost: localhost\r\n", "Host: localhost\r\nHost: \r\n",
    ])
    func `a request with two Host fields is refused, whatever they are`(fields: String) async throws
    {
        try await withServer {
            $0.allowedHosts = ["*"]
        } _: { server in
            for fields in [fields, ""] {
                try expectProblem(try await Self.asking(fields, on: server), .badRequest)
            }
        }
    }

    /// A browser sends `fetch("/files")` from a page whose name points here. Over plain HTTP the
    /// request has neither `Origin` nor `Sec-Fetch-Site`, and the page can leave `Referer` out. If
    /// every name is allowed, the gate cannot recognize it, so `*` needs
    /// ``ConfigurationKey/allowAnyHost``.
    @Test(arguments: ["*", "files.example"])
    func `a rebound page is answered if every name is allowed, and refused otherwise`(
        allowed: String
    ) async throws {
        try await withServer {
            $0.allowedHosts = [allowed]
        } _: { server in
            let fields = "Host: evil.example:8080\r\nUser-Agent: Mozilla/5.0\r\nAccept: */*\r\n"
            let answer = try await Self.asking(fields, on: server)
            #expect(answer.status == (allowed == "*" ? 200 : 400))
        }
    }

    /// RFC 9112 section 3.2.2: the name in the target counts, not the one in `Host`.
    @Test(arguments: [
        ("http://localhost/files", 200), ("HTTP://LOCALHOST:8080/files", 200),
        ("http://127.0.0.1/files?limit=1", 200), ("http://[::1]:80/files", 200),
        ("http://evil.example/files", 400), ("https://evil.example/files", 400),
        ("ftp://evil.example/files", 400), ("http://evil.example:8080/files", 400),
        ("http://user@localhost/files", 400), ("http://localhost@evil.example/files", 400),
        ("http://localhost:80\\@evil.example/files", 400), ("http:///files", 400),
        ("http://evil.example?x=http://localhost/files", 400), ("http://localhost", 200),
    ])
    func `the name in a request target is checked like Host`(
        target: String, status: Int
    ) async throws {
        try await SharedServer.use { server in
            for host in ["localhost", "evil.example"] {
                let connection = try await server.connect()
                try await connection.send("GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n")
                #expect(try await connection.answer().status == status, "\(host)")
            }
        }
    }

    @Test func `a target that names a host does not replace Host`() async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send("GET http://localhost/files HTTP/1.1\r\n\r\n")
            try expectProblem(try await connection.answer(), .badRequest)
        }
    }

    @Test(arguments: [
        "Origin: http://evil.example", "Origin: null", "Origin: ", "Origin: localhost",
        "Origin: http://localhost.evil.example", "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: ",
    ])
    func `requests from pages of other origins are refused`(field: String) async throws {
        try await SharedServer.use { server in
            let answer = try await Self.asking("Host: localhost\r\n\(field)\r\n", on: server)
            try expectProblem(answer, .badRequest)
        }
    }

    struct Page: Sendable {
        var host: String
        var origin: String
    }

    @Test(arguments: ["Sec-Fetch-Site: none", "Sec-Fetch-Site: same-origin"])
    func `a browser's own requests are answered`(field: String) async throws {
        try await SharedServer.use { server in
            let answer = try await Self.asking("Host: localhost\r\n\(field)\r\n", on: server)
            #expect(answer.status == 200)
        }
    }

    @Test(arguments: [
        Page(host: "localhost", origin: "http://localhost"),
        Page(host: "LOCALHOST:8080", origin: "http://localhost:8080"),
        Page(host: "localhost:80", origin: "http://localhost"),
        Page(host: "localhost:", origin: "http://localhost:80"),
        Page(host: "127.0.0.1:9000", origin: "HTTP://127.0.0.1:9000"),
        Page(host: "[::1]:8080", origin: "http://[::1]:8080"),
    ])
    func `requests from the server's own pages are answered`(page: Page) async throws {
        try await SharedServer.use { server in
            let fields = "Host: \(page.host)\r\nOrigin: \(page.origin)\r\n"
            let answer = try await Self.asking(fields, on: server)
            #expect(answer.status == 200)
        }
    }

    /// Another port is another program on this machine, and another scheme is another origin.
    @Test(arguments: [
        Page(host: "localhost:8080", origin: "http://localhost:3000"),
        Page(host: "localhost:8080", origin: "http://localhost"),
        Page(host: "localhost", origin: "http://localhost:8080"),
        Page(host: "localhost:8080", origin: "https://localhost:8080"),
        Page(host: "localhost", origin: "https://localhost"),
        Page(host: "localhost:443", origin: "https://localhost"),
        Page(host: "localhost", origin: "http://127.0.0.1"),
        Page(host: "localhost", origin: "http://user@localhost"),
        Page(host: "localhost", origin: "http://localhost/"),
        Page(host: "localhost", origin: "http://localhost:x"),
        Page(host: "localhost", origin: "ftp://localhost"),
        Page(host: "localhost", origin: "http://localhost, http://localhost"),
    ])
    func `requests from pages of another port or scheme are refused`(page: Page) async throws {
        try await SharedServer.use { server in
            let fields = "Host: \(page.host)\r\nOrigin: \(page.origin)\r\n"
            try expectProblem(try await Self.asking(fields, on: server), .badRequest)
        }
    }

    /// A proxy speaks TLS to the browser, and this server does not see it.
    @Test(arguments: [
        ("files.example", "https://files.example", 200),
        ("files.example", "http://files.example", 200),
        ("files.example:8443", "https://files.example:8443", 200),
        ("files.example", "https://files.example:443", 200),
        ("files.example", "https://files.example:8443", 400),
        ("files.example:8443", "https://files.example", 400),
        ("files.example", "https://localhost", 400), ("localhost", "https://localhost", 400),
    ])
    func `requests from pages of an allowed name may come through TLS`(
        host: String, origin: String, status: Int
    ) async throws {
        try await withServer {
            $0.allowedHosts = ["files.example"]
        } _: { server in
            let fields = "Host: \(host)\r\nOrigin: \(origin)\r\n"
            let answer = try await Self.asking(fields, on: server)
            #expect(answer.status == status)
        }
    }

    /// The gate refuses before any state changes.
    @Test func `a refused request changes nothing`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            _ = try await server.ask(upload.put(0))
            let foreign = [("Origin", "http://evil.example")]
            for request in [
                upload.put(1), upload.finalize(), HTTPRequestBytes("DELETE", upload.path),
            ] {
                let answer = try await expectUnchanged(upload, on: server) {
                    try await server.ask(request.with(foreign))
                }
                try expectProblem(answer, .badRequest)
            }
        }
    }

    @Test func `requests for the public name of a proxy are answered if it is allowed`()
        async throws
    {
        try await withServer { configuration in
            configuration.allowedHosts = ["files.example"]
        } _: { server in
            for (host, status) in [
                ("files.example", 200), ("Files.Example:443", 200), ("localhost", 200),
                ("other.example", 400), ("x.files.example", 400),
            ] {
                let answer = try await Self.asking("Host: \(host)\r\n", on: server)
                #expect(answer.status == status)
            }
        }
    }

    @Test func `a star allows every name, but no page of another origin`() async throws {
        try await withServer { configuration in
            configuration.allowedHosts = ["*"]
        } _: { server in
            let own = try await Self.asking("Host: any.example\r\n", on: server)
            #expect(own.status == 200)
            let fields = "Host: any.example\r\nOrigin: http://evil.example\r\n"
            let foreign = try await Self.asking(fields, on: server)
            #expect(foreign.status == 400)
        }
    }
}
