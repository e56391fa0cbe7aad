import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// `Expect: 100-continue`: a refusal replaces the 100 response and comes before the body (RFC 9110
/// section 10.1.1).
@Suite(.timeLimit(.minutes(1))) struct ContinueTests {
    private static func announcing(
        _ request: HTTPRequestBytes, byteCount: Int
    ) -> HTTPRequestBytes {
        request.with([("Expect", "100-continue"), ("Content-Length", String(byteCount))])
    }

    @Test func `an acceptable chunk gets 100 Continue`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            let connection = try await server.connect()
            let put = Self.announcing(upload.put(0), byteCount: 1000)
            try await connection.send(put.head)
            let invitation = try await connection.answer()
            #expect(invitation.status == 100)
            try await connection.send(upload.chunk(0))
            #expect(try await connection.answer().status == 201)
            // The connection stays usable.
            #expect(try await connection.ask(upload.put(1)).status == 201)
        }
    }

    @Test func `an upload of a whole file gets 100 Continue`() async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            let post = HTTPRequestBytes("POST", "/files")
            try await connection.send(Self.announcing(post, byteCount: 3).head)
            #expect(try await connection.answer().status == 100)
            try await connection.send("abc")
            #expect(try await connection.answer().status == 201)
        }
    }

    @Test func `a JSON message gets 100 Continue`() async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            let message = #"{"fileName":"a","fileSize":1}"#
            let request = HTTPRequestBytes.json("POST", "/uploads/sessions", message)
            try await connection.send(
                Self.announcing(request, byteCount: message.utf8.count).head)
            #expect(try await connection.answer().status == 100)
            try await connection.send(message)
            #expect(try await connection.answer().status == 201)
        }
    }

    @Test(arguments: ["200-ok", "100-continue, x", "100-continue;a=b"])
    func `an expectation that cannot be met is refused before the body`(
        value: String
    ) async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            let post = HTTPRequestBytes("POST", "/files")
                .with([("Expect", value), ("Content-Length", "3")])
            try await connection.send(post.head)
            try expectProblem(try await connection.answer(), .expectationFailed)
            #expect(try await connection.untilClosed().isEmpty)
        }
    }

    /// The client sends no byte of the body, so the answer must come before it.
    @Test(arguments: [
        ErrorCode.chunkConflict, .sessionNotFound, .chunkOutOfBounds, .rangeMismatch,
        .chunkHashRequired, .offsetMismatch, .lengthMismatch, .fileTooLarge, .requestTooLarge,
        .routeNotFound, .methodNotAllowed, .sessionClosed, .busy,
    ])
    func `a request that would be refused gets no 100 Continue`(code: ErrorCode) async throws {
        try await ErrorEnvironment.fixture().withServer { server in
            let fixture = try await ErrorEnvironment(server)
            var held: [ClientConnection] = []
            if code == .busy {
                let other = try await fixture.another()
                for index in 0..<ErrorEnvironment.maxConcurrentWrites {
                    held.append(try await server.hold(index, of: other))
                }
            }
            let connection = try await server.connect()
            try await connection.send(try await Self.request(refusedWith: code, fixture).head)
            try expectProblem(try await connection.answer(), code)
            // The server cannot know whether the client still sends the body, so it ends the
            // connection.
            _ = try await connection.untilClosed()
            for writer in held { try await writer.close() }
        }
    }

    private static func request(
        refusedWith code: ErrorCode, _ fixture: ErrorEnvironment
    ) async throws -> HTTPRequestBytes {
        var put = announcing(fixture.upload.put(2), byteCount: 500)
        switch code {
        case .chunkConflict:
            let foreign = "sha256=\(ErrorEnvironment.foreignDigest)"
            put = announcing(fixture.upload.put(0), byteCount: 1000)
            return put.with([("X-Chunk-Hash", foreign)])
        case .sessionNotFound:
            put.target = "/uploads/sessions/\(SessionID.random())/chunks/2"
            return put
        case .chunkOutOfBounds:
            put.target = fixture.upload.path + "/chunks/3"
            return put
        case .rangeMismatch: return put.with([("Content-Range", "bytes 0-1/2")])
        case .chunkHashRequired: return put.with([("X-Chunk-Hash", nil)])
        case .offsetMismatch: return announcing(fixture.upload.put(1, from: 500), byteCount: 500)
        case .lengthMismatch: return put.with([("Content-Length", "501")])
        case .fileTooLarge:
            let byteCount = Int(ErrorEnvironment.maxFileSize) + 1
            return announcing(HTTPRequestBytes("POST", "/files"), byteCount: byteCount)
        case .requestTooLarge:
            return announcing(.json("POST", "/uploads/sessions", ""), byteCount: 65_537)
        case .routeNotFound: return announcing(HTTPRequestBytes("POST", "/nowhere"), byteCount: 9)
        case .methodNotAllowed:
            return announcing(HTTPRequestBytes("PUT", "/files"), byteCount: 9)
        case .sessionClosed:
            let other = try await fixture.another()
            _ = try await fixture.server.ask(HTTPRequestBytes("DELETE", other.path))
            return announcing(other.put(0), byteCount: 1000)
        default: return put
        }
    }

    /// R122: the bytes are there, so the client need not send them again.
    @Test func `a stored chunk gets no 100 Continue`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            _ = try await server.ask(upload.put(0))
            let connection = try await server.connect()
            try await connection.send(Self.announcing(upload.put(0), byteCount: 1000).head)
            let answer = try await connection.answer()
            #expect(answer.status == 200)
            #expect(answer.field("Connection") == "close")
        }
    }

    /// The server never asks for durable bytes again, even from a client that does not know of
    /// them.
    @Test func `a chunk with a partial gets 100 Continue only for the missing bytes`() async throws
    {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            try await server.breakOff(0, of: upload, after: 600)
            let connection = try await server.connect()
            try await connection.send(Self.announcing(upload.put(0), byteCount: 1000).head)
            let problem = try expectProblem(try await connection.answer(), .offsetMismatch)
            #expect(problem.expectedOffset == 600)
            let rest = try await server.connect()
            try await rest.send(Self.announcing(upload.put(0, from: 600), byteCount: 400).head)
            #expect(try await rest.answer().status == 100)
            try await rest.send(Array(upload.chunk(0)[600...]))
            #expect(try await rest.answer().status == 201)
        }
    }

    /// The head shows the media type.
    @Test func `a message of another media type gets no 100 Continue`() async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            let request = HTTPRequestBytes(
                "POST", "/uploads/sessions", [("Content-Type", "text/plain")])
            try await connection.send(Self.announcing(request, byteCount: 9).head)
            let first = try await connection.answer()
            try await connection.close()
            #expect(first.status == 415)
        }
    }
}
