import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// Addresses, methods, and fields of every answer.
@Suite(.timeLimit(.minutes(1))) struct RoutingTests {
    @Test(arguments: ["/healthz", "/readyz"])
    func `a healthy server answers its health checks`(target: String) async throws {
        try await SharedServer.use { server in
            let answer = try await server.get(target)
            #expect(answer.status == 200)
            #expect(answer.field("Content-Type") == "application/json")
            #expect(answer.field("Cache-Control") == "no-store")
        }
    }

    @Test func `the readiness answer has version, limits and protocols`() async throws {
        try await SharedServer.use { server in
            let answer = try await server.get("/readyz").decoded(ServerDescription.self)
            #expect(answer.status == "ready")
            #expect(answer.service == "kedge")
            #expect(answer.version == KedgeVersion.current)
            #expect(answer.limits?.maxChunkSize ?? 0 > 0)
            for spoken in answer.protocols ?? [] where spoken.name != "native" {
                let options = try await server.ask(HTTPRequestBytes("OPTIONS", spoken.path))
                #expect([200, 204].contains(options.status), "\(spoken.name) is there")
            }
            #expect(answer.protocols?.count == 3)
        }
    }

    @Test(arguments: [
        "/nowhere", "/openapi.yml", "/files/x/y", "/files/../files", "/uploads",
        "/uploads/sessions/x/y",
        "/uploads/sessions/x/chunks", "/uploads/sessions/x/chunks/0/1", "/FILES", "/%66iles",
        "/healthz/x", "*",
    ])
    func `an unknown address is not found`(target: String) async throws {
        try await SharedServer.use { server in
            for method in ["GET", "POST", "DELETE"] {
                let answer = try await server.ask(HTTPRequestBytes(method, target))
                try expectProblem(answer, .routeNotFound)
                #expect(answer.field("Allow") == nil)
            }
        }
    }

    @Test func `the root describes the service to programs and to people`() async throws {
        try await SharedServer.use { server in
            let answer = try await server.get("/")
            #expect(answer.status == 200)
            struct Description: Decodable {
                var name: String
                var version: String
                var links: [String: String]
            }
            let description = try answer.decoded(Description.self)
            #expect(description.name == "kedge")
            #expect(description.version == KedgeVersion.current)
            for path in description.links.values.sorted() {
                #expect(try await server.get(path).status == 200, "\(path)")
            }
            let page = try await server.ask(
                HTTPRequestBytes("GET", "/", [("Accept", "text/html,*/*;q=0.8")]))
            #expect(page.field("Content-Type") == "text/html; charset=utf-8")
            let text = String(decoding: page.body, as: UTF8.self)
            #expect(text.contains("Kedge \(KedgeVersion.current)"))
        }
    }

    @Test func `the contract is served as it is in the repository`() async throws {
        try await SharedServer.use { server in
            let answer = try await server.get("/openapi.yaml")
            #expect(answer.field("Content-Type") == "application/yaml")
            let file = URL(fileURLWithPath: #filePath)
                .appendingPathComponent("../../../../openapi/kedge.yaml").standardizedFileURL
            #expect(Data(answer.body) == (try Data(contentsOf: file)))
            let tag = try #require(answer.field("ETag"))
            let again = try await server.ask(
                HTTPRequestBytes("GET", "/openapi.yaml", [("If-None-Match", tag)]))
            #expect(again.status == 304)
        }
    }

    struct Address: Sendable {
        var target: String
        var methods: Set<String>
    }

    @Test(arguments: [
        Address(target: "/", methods: ["GET"]), Address(target: "/openapi.yaml", methods: ["GET"]),
        Address(target: "/uploads/sessions", methods: ["GET", "POST"]),
        Address(target: "/uploads/sessions/x", methods: ["DELETE", "GET"]),
        Address(target: "/uploads/sessions/x/chunks/0", methods: ["PUT"]),
        Address(target: "/uploads/sessions/x/finalize", methods: ["POST"]),
        Address(
            target: "/uploads/resumable/x", methods: ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH"]),
        Address(target: "/tus/", methods: ["OPTIONS", "POST"]),
        Address(target: "/tus", methods: ["OPTIONS", "POST"]),
        Address(target: "/tus/x", methods: ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH"]),
        Address(target: "/files", methods: ["GET", "OPTIONS", "POST"]),
        Address(target: "/files/x", methods: ["DELETE", "GET", "HEAD"]),
        Address(target: "/files/x/meta", methods: ["GET"]),
        Address(target: "/files/x/chunks", methods: ["GET"]),
        Address(target: "/healthz", methods: ["GET"]), Address(target: "/readyz", methods: ["GET"]),
    ])
    func `a method that an address does not support is refused with Allow`(
        address: Address
    ) async throws {
        let methods: Set = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]
        try await SharedServer.use { server in
            for method in methods.subtracting(address.methods).sorted() {
                let answer = try await server.ask(HTTPRequestBytes(method, address.target))
                try expectProblem(answer, .methodNotAllowed)
                let allowed = (answer.field("Allow") ?? "").split(separator: ",")
                    .map { $0.filter { $0 != " " } }
                #expect(Set(allowed) == address.methods)
            }
        }
    }

    @Test(arguments: ["a", "A-z_0.9", String(repeating: "x", count: 64)])
    func `a client's request id comes back`(id: String) async throws {
        try await SharedServer.use { server in
            for target in ["/healthz", "/nowhere"] {
                let answer = try await server.get(target, [("X-Request-Id", id)])
                #expect(answer.field("X-Request-Id") == id)
            }
        }
    }

    /// The id goes into logs and answers, so it is plain text or the server's own.
    @Test(arguments: ["", "a b", "a\"b", "é", "<x>", String(repeating: "x", count: 65)])
    func `a malformed request id is replaced`(id: String) async throws {
        try await SharedServer.use { server in
            let answer = try await server.get("/nowhere", [("X-Request-Id", id)])
            try expectProblem(answer, .routeNotFound)
            #expect(answer.field("X-Request-Id") != id)
        }
    }

    @Test func `each answer has a request id of its own`() async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            var ids: Set<String> = []
            for _ in 0..<10 {
                let answer = try await connection.ask(HTTPRequestBytes("GET", "/healthz"))
                ids.insert(answer.field("X-Request-Id") ?? "")
            }
            #expect(ids.count == 10)
        }
    }
}
