import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Capabilities that tus clients ask for, and fields of every answer of the endpoint.
@Suite(.timeLimit(.minutes(1))) struct TusOptionsTests {
    @Test(arguments: ["/tus/", "/tus", "/tus/00000000000000000000000000000000"])
    func `OPTIONS announces versions, extensions and limits, and needs no version`(
        target: String
    ) async throws {
        try await SharedServer.use { server in
            let answer = try await server.ask(HTTPRequestBytes("OPTIONS", target))
            #expect(answer.status == 204)
            #expect(answer.field("Tus-Version") == "1.0.0")
            #expect(answer.field("Tus-Max-Size") == "1099511627776")
            #expect(
                answer.field("Tus-Extension")
                    == "creation,creation-defer-length,creation-with-upload,expiration,checksum,"
                    + "checksum-trailer,termination,concatenation,concatenation-unfinished")
            let algorithms = answer.field("Tus-Checksum-Algorithm")?.split(separator: ",") ?? []
            #expect(Set(algorithms) == ["sha1", "sha256", "sha512", "md5", "crc32c"])
        }
    }

    @Test(arguments: ["0.2.2", "", "1.0.0, 1.0.0", "2.0.0", nil])
    func `a request in another tus version is refused and changes nothing`(version: String?)
        async throws
    {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            for request in [
                HTTPRequestBytes.tus("POST", "/tus/", [("Upload-Length", "3")]),
                .tusPatch(path, at: 0, [1, 2, 3]), .tus("DELETE", path),
            ] {
                let answer = try await server.ask(request.with([("Tus-Resumable", version)]))
                try expectProblem(answer, .uploadVersionUnsupported)
                #expect(answer.field("Tus-Version") == "1.0.0")
                #expect(answer.field("Tus-Resumable") == "1.0.0")
            }
            let head = try await server.ask(
                .tus("HEAD", path).with([("Tus-Resumable", version)]))
            #expect(head.status == 412)
            #expect(head.field("Upload-Offset") == nil)
            try await expectOffset(0, of: path, on: server)
        }
    }

    @Test(arguments: ["0.2.2", "", "1.0.0, 1.0.0"])
    func `a download in another tus version is refused, and one without a version is served`(
        version: String
    ) async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            _ = try await server.ask(.tusPatch(path, at: 0, [1, 2, 3]))
            let answer = try await server.get(path, [("Tus-Resumable", version)])
            try expectProblem(answer, .uploadVersionUnsupported)
            #expect(answer.field("Tus-Version") == "1.0.0")
            for fields in [[], [("Tus-Resumable", "1.0.0")]] {
                #expect(try await server.get(path, fields).body == [1, 2, 3])
            }
            let options = try await server.ask(
                HTTPRequestBytes("OPTIONS", path, [("Tus-Resumable", version)]))
            #expect(options.status == 204)
        }
    }

    @Test func `every answer of the tus endpoint has Tus-Resumable, and no other answer has it`()
        async throws
    {
        try await SharedServer.use { server in
            for request in [
                HTTPRequestBytes("PUT", "/tus/x"), HTTPRequestBytes("GET", "/tus/x/y"),
                .tus("HEAD", "/tus/x"), .tus("POST", "/tus/", [("Origin", "http://evil.example")]),
            ] {
                let answer = try await server.connect().ask(request)
                #expect((400..<500).contains(answer.status))
                #expect(answer.field("Tus-Resumable") == "1.0.0")
            }
            #expect(try await server.get("/healthz").field("Tus-Resumable") == nil)
        }
    }

    @Test func `the tus endpoint can be at another path`() async throws {
        try await withServer {
            $0.tusEndpoint = EndpointPath(text: "/api/v1/tus") ?? .tus
        } _: { server in
            let answer = try await server.ask(
                .tus("POST", "/api/v1/tus/", [("Upload-Length", "3")]))
            let path = try #require(answer.tusPath)
            #expect(path.hasPrefix("/api/v1/tus/"))
            try await expectOffset(0, of: path, on: server)
            try expectProblem(
                try await server.ask(.tus("POST", "/tus/", [("Upload-Length", "3")])),
                .routeNotFound)
        }
    }

    @Test(arguments: [
        "", "/", "tus", "/files", "/files/tus", "/uploads/", "/healthz", "/a b", "/../x", "/é",
        "/a/{b}", "/*", "/me", "/metrics", "/owners", "/tokens", "/openapi.yaml",
    ])
    func `a taken or malformed endpoint path is refused`(text: String) {
        #expect(EndpointPath(text: text) == nil)
    }

    struct Override: Sendable {
        var method: String
        var value: String
        var status: Int
    }

    @Test(arguments: [
        Override(method: "POST", value: "PATCH", status: 204),
        Override(method: "GET", value: "PATCH", status: 204),
        Override(method: "POST", value: "patch", status: 204),
        Override(method: "POST", value: "HEAD", status: 200),
        Override(method: "POST", value: "DELETE", status: 204),
        Override(method: "PATCH", value: "PUT", status: 405),
        Override(method: "PATCH", value: "not a method", status: 405),
    ])
    func `the method in X-HTTP-Method-Override counts`(override: Override) async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            var request = HTTPRequestBytes.tusPatch(
                path, at: 0, [1, 2, 3], [("X-HTTP-Method-Override", override.value)])
            request.method = override.method
            let connection = try await server.connect()
            let answer = try await connection.ask(request)
            #expect(answer.status == override.status)
            // The next answer begins where this one ended.
            let next = try await connection.ask(HTTPRequestBytes("GET", "/healthz"))
            #expect(next.status == 200)
        }
    }

    @Test func `an error answer to an overridden HEAD has no body`() async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            let answer = try await connection.ask(
                .tus("POST", "/tus/x", [("X-HTTP-Method-Override", "HEAD")]))
            #expect(answer.status == 404)
            #expect(answer.field("Content-Length") == "0")
            #expect(try await connection.ask(HTTPRequestBytes("GET", "/healthz")).status == 200)
        }
    }

    @Test func `other endpoints ignore X-HTTP-Method-Override`() async throws {
        try await SharedServer.use { server in
            let file = try await server.upload([1, 2, 3])
            let answer = try await server.get(
                "/files/\(file.remoteFileId)", [("X-HTTP-Method-Override", "DELETE")])
            #expect(answer.body == [1, 2, 3])
        }
    }
}
