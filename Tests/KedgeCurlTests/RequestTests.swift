import HTTPTypes
import KedgeCurl
import KedgeTesting
import KedgeTransport
import Testing

/// Requests as the server receives them.
@Suite(.timeLimit(.minutes(1)))
struct RequestTests {
    /// Answers with the head of the request and the size of its body.
    private let server = ScriptedServer { connection in
        while let request = connection.readRequest() {
            let text = (request.lines + ["\(request.body.count)"]).joined(separator: "\n")
            let isHead = request.method == "HEAD"
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count)\r\n\r\n")
            if !isHead { connection.send(text) }
        }
    }
    private let client = CurlClient.forTests()

    private func lines(of request: TransportRequest) async throws -> [String] {
        let response = try await client.send(request)
        let text = String(decoding: try await response.body.collect(upTo: 65_536), as: UTF8.self)
        return text.split(separator: "\n").map(String.init)
    }

    @Test(arguments: [HTTPRequest.Method.get, .delete, .options])
    func `a request whose method has no body announces none`(_ method: HTTPRequest.Method)
        async throws
    {
        let lines = try await lines(of: .init(method: method, url: server.url("/a?b=c")))
        #expect(lines.first == "\(method.rawValue) /a?b=c HTTP/1.1")
        #expect(!lines.contains { $0.lowercased().hasPrefix("content-length") })
    }

    @Test(arguments: [HTTPRequest.Method.post, .put, .patch])
    func `a request whose method is meant for a body announces an empty one`(
        _ method: HTTPRequest.Method
    ) async throws {
        let lines = try await lines(of: .init(method: method, url: server.url()))
        #expect(lines.contains("Content-Length: 0"))
    }

    @Test(arguments: [HTTPRequest.Method.post, .put, .patch, .delete])
    func `a body is sent with its size, whatever the caller announced`(
        _ method: HTTPRequest.Method
    ) async throws {
        let lines = try await lines(
            of: .init(
                method: method, url: server.url(),
                headerFields: [.contentLength: "99", .transferEncoding: "chunked"],
                body: .bytes([1, 2, 3])))
        #expect(lines.filter { $0.hasPrefix("Content-Length") } == ["Content-Length: 3"])
        #expect(!lines.contains { $0.hasPrefix("Transfer-Encoding") })
        #expect(lines.last == "3")
    }

    @Test func `a HEAD response ends with its head`() async throws {
        let response = try await client.send(.init(method: .head, url: server.url()))
        #expect(response.headerFields[.contentLength] != nil)
        #expect(try await response.body.collect(upTo: 0) == [])
    }

    @Test func `a request negotiates nothing that the caller did not ask for`() async throws {
        let lines = try await lines(
            of: .init(
                method: .put, url: server.url(),
                body: .source(RepeatedByte(byteCount: 4 * 1024 * 1024))))
        #expect(!lines.contains { $0.lowercased().hasPrefix("expect") })
        #expect(!lines.contains { $0.lowercased().hasPrefix("accept-encoding") })
    }

    @Test func `repeated and empty header fields are sent as they are`() async throws {
        let name = try #require(HTTPField.Name("X-Kedge"))
        var fields = HTTPFields()
        fields[values: name] = ["one", "", "two"]
        let lines = try await lines(
            of: .init(method: .get, url: server.url(), headerFields: fields))
        let sent = lines.filter { $0.hasPrefix("X-Kedge") }
        #expect(sent == ["X-Kedge: one", "X-Kedge:", "X-Kedge: two"])
    }

    @Test func `dot segments stay in the path of a request`() async throws {
        let lines = try await lines(of: .init(method: .get, url: server.url("/a/../b")))
        #expect(lines.first == "GET /a/../b HTTP/1.1")
    }

    @Test(arguments: ["", "nonsense", "http://", "file:///etc/passwd", "ftp://127.0.0.1/"])
    func `a URL that is not an absolute HTTP URL is refused`(_ url: String) async {
        #expect(
            await failure(of: client, sending: .init(method: .get, url: url)) == .invalidURL)
    }
}
