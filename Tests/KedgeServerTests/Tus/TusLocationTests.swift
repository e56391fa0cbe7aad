import KedgeServer
import KedgeTesting
import Testing

/// `Location` of a new upload.
@Suite(.timeLimit(.minutes(1))) struct TusLocationTests {
    /// Makes an upload through a host name of the server and returns its address.
    private static func location(
        at host: String, _ fields: [(String, String)], on server: RunningServer
    ) async throws -> String {
        let fields = [("Tus-Resumable", "1.0.0"), ("Upload-Length", "1")] + fields
        let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
        let connection = try await server.connect()
        try await connection.send("POST /tus/ HTTP/1.1\r\nHost: \(host)\r\n\(lines)\r\n")
        return try #require(try await connection.answer().field("Location"))
    }

    struct Address: Sendable {
        var host: String
        var fields: [(String, String)] = []
        /// The address up to the path.
        var prefix: String
    }

    /// A wrong scheme would lead nowhere, and some clients cannot follow a path.
    @Test(arguments: [
        Address(host: "127.0.0.1:8080", prefix: "http://127.0.0.1:8080"),
        Address(host: "files.example", prefix: ""),
        Address(
            host: "127.0.0.1:8080", fields: [("X-Forwarded-Proto", "https")],
            prefix: "https://127.0.0.1:8080"),
        Address(
            host: "files.example", fields: [("X-Forwarded-Proto", "https")],
            prefix: "https://files.example"),
        Address(
            host: "files.example", fields: [("X-Forwarded-Proto", "HTTP"), ("Via", "1.1 proxy")],
            prefix: "http://files.example"),
        Address(host: "files.example", fields: [("X-Forwarded-Proto", "ftp")], prefix: ""),
        Address(host: "localhost", fields: [("X-Forwarded-Proto", "ftp")], prefix: ""),
        Address(host: "localhost:8443", fields: [("Forwarded", "proto=https")], prefix: ""),
        Address(host: "localhost:8443", fields: [("Via", "1.1 proxy")], prefix: ""),
        Address(host: "localhost", fields: [("X-Forwarded-For", "192.0.2.1")], prefix: ""),
        Address(host: "localhost", fields: [("x-forwarded-host", "files.example")], prefix: ""),
    ])
    func `the address of an upload is an absolute URL where the scheme is known`(
        address: Address
    ) async throws {
        try await withServer {
            $0.allowedHosts = ["files.example"]
        } _: { server in
            let location = try await Self.location(at: address.host, address.fields, on: server)
            #expect(location.hasPrefix("\(address.prefix)/tus/"))
        }
    }

    @Test(arguments: [
        ("https://files.example", "https://files.example"),
        ("http://files.example:8080/", "http://files.example:8080"),
        ("https://example.org/a/b/", "https://example.org/a/b"),
    ])
    func `the address of an upload begins with the configured public address`(
        text: String, prefix: String
    ) async throws {
        try await withServer {
            $0.publicAddress = PublicAddress(text: text) ?? .ofRequests
        } _: { server in
            for fields in [[], [("X-Forwarded-Proto", "http")], [("Via", "1.1 proxy")]] {
                let location = try await Self.location(at: "localhost", fields, on: server)
                #expect(location.hasPrefix("\(prefix)/tus/"))
            }
        }
    }
}
