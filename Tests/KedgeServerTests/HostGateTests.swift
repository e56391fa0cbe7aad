import KedgeModel
import KedgeServer
import Testing

/// The gate before every route: a page in a browser on this machine is not its user.
@Suite(.timeLimit(.minutes(1))) struct `The gate` {
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
    func `names of this machine are answered`(host: String) async throws {
        try await SharedServer.use { server in
            let answer = try await Self.asking("Host: \(host)\r\n", on: server)
            #expect(answer.status == 200)
        }
    }

    /// DNS rebinding: a page lets its own name point here.
    @Test(arguments: [
        "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example",
        "127.evil.example", "", "0.0.0.0", "192.168.1.1", "[::2]", "user@localhost",
    ])
    func `other names are refused`(host: String) async throws {
        try await SharedServer.use { server in
            let answer = try await Self.asking("Host: \(host)\r\n", on: server)
            #expect(answer.status == 400)
        }
    }

    @Test func `a request without a name is refused`() async throws {
        try await SharedServer.use { server in
            let answer = try await Self.asking("", on: server)
            #expect(answer.status == 400)
        }
    }

    @Test(arguments: [
        "Origin: http://evil.example", "Origin: null", "Origin: ", "Origin: localhost",
        "Origin: http://localhost.evil.example", "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: ",
    ])
    func `pages of other origins are refused`(field: String) async throws {
        try await SharedServer.use { server in
            let answer = try await Self.asking("Host: localhost\r\n\(field)\r\n", on: server)
            try expectProblem(answer, .badRequest)
        }
    }

    @Test(arguments: [
        "Origin: http://localhost", "Origin: https://LOCALHOST:8443", "Sec-Fetch-Site: none",
        "Sec-Fetch-Site: same-origin",
    ])
    func `its own pages are answered`(field: String) async throws {
        try await SharedServer.use { server in
            let answer = try await Self.asking("Host: localhost\r\n\(field)\r\n", on: server)
            #expect(answer.status == 200)
        }
    }

    /// A refusal comes before any state is touched.
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

    @Test func `the public name of a proxy is answered when it is allowed`() async throws {
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

    @Test func `a star allows every name, and no foreign page`() async throws {
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
