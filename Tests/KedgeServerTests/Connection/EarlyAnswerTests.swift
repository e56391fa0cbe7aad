import KedgeEngine
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Answers before the end of the body, to clients that send all before they read.
@Suite(.timeLimit(.minutes(1))) struct EarlyAnswerTests {
    /// Far more than the server reads of a body that it has refused.
    private static let byteCount = 64 << 20
    private static let largestChunk: Int64 = 1 << 20

    private static func smallChunks(_ configuration: inout ServiceConfiguration) {
        configuration.engine.chunkSizes = 1...largestChunk
        configuration.engine.defaultChunkSize = largestChunk
    }

    /// The client must be able to read the reason, instead of finding its connection reset.
    @Test(arguments: [
        ErrorCode.sessionNotFound, .routeNotFound, .methodNotAllowed, .requestTooLarge,
        .chunkHashRequired,
    ])
    func `a client that sends a refused body reads the answer, and the connection ends`(
        code: ErrorCode
    ) async throws {
        try await withServer(Self.smallChunks) { server in
            let connection = try await server.connect()
            let request = Self.request(refusedWith: code).with([
                ("Content-Length", String(Self.byteCount))
            ])
            try await connection.send(request.head)
            let sent = try await connection.sendZeros(Self.byteCount)
            #expect(sent < Self.byteCount)
            let answer = try await connection.answer()
            try expectProblem(answer, code)
            #expect(answer.field("Connection") == "close")
            let rest = try await connection.untilClosed()
            #expect(rest.isEmpty)
            try await expectAlive(server)
        }
    }

    @Test func `a refused chunk is read to its end`() async throws {
        try await withServer(Self.smallChunks) { server in
            let connection = try await server.connect()
            let byteCount = Int(Self.largestChunk)
            let request = Self.request(refusedWith: .sessionNotFound).with([
                ("Content-Length", String(byteCount))
            ])
            try await connection.send(request.head)
            #expect(try await connection.sendZeros(byteCount) == byteCount)
            try expectProblem(try await connection.answer(), .sessionNotFound)
            try await connection.untilClosed()
        }
    }

    private static func request(refusedWith code: ErrorCode) -> HTTPRequestBytes {
        let chunk = "/uploads/sessions/\(SessionID.random())/chunks/0"
        let range = [("Content-Range", "bytes 0-\(byteCount - 1)/\(byteCount)")]
        let hash = [("X-Chunk-Hash", "sha256=\(String(repeating: "ab", count: 32))")]
        switch code {
        case .sessionNotFound: return HTTPRequestBytes("PUT", chunk, range + hash)
        case .chunkHashRequired: return HTTPRequestBytes("PUT", chunk, range)
        case .methodNotAllowed: return HTTPRequestBytes("PUT", "/files")
        case .requestTooLarge:
            return HTTPRequestBytes(
                "POST", "/uploads/sessions", [("Content-Type", "application/json")])
        default: return HTTPRequestBytes("POST", "/nowhere")
        }
    }

    @Test func `a stored chunk is acknowledged before its body ends`() async throws {
        try await SharedServer.use { server in
            let content = [UInt8](repeating: 7, count: 3 << 20)
            let upload = try await server.begin(content, chunkSize: 3 << 20)
            _ = try await server.ask(upload.put(0))
            let connection = try await server.connect()
            let put = upload.put(0)
            try await connection.send(put.head)
            try await connection.send(Array(content[..<1000]))
            #expect(try await connection.answer().status == 200)
            try await connection.send(Array(content[1000...]))
            try await connection.untilClosed()
        }
    }

    /// The bytes in flight are no request.
    @Test func `the rest of a refused body is never taken for a request`() async throws {
        try await SharedServer.use { server in
            let hidden = HTTPRequestBytes("DELETE", "/files/\(FileID.random())").bytes
            let connection = try await server.connect()
            let request = HTTPRequestBytes("POST", "/nowhere").with([
                ("Content-Length", String(hidden.count + 1))
            ])
            try await connection.send(request.head)
            try expectProblem(try await connection.answer(), .routeNotFound)
            try await connection.send(hidden)
            let rest = try await connection.untilClosed()
            #expect(rest.isEmpty)
        }
    }
}
