import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// `HEAD` and `PATCH` on an upload.
@Suite(.timeLimit(.minutes(1))) struct TusPatchTests {
    @Test func `each append continues at the offset, and the last one makes the file`()
        async throws
    {
        try await SharedServer.use { server in
            let content = sampleBytes(10_000, seed: 21)
            let path = try await server.tusUpload(byteCount: content.count)
            let connection = try await server.connect()
            for start in stride(from: 0, to: content.count, by: 3000) {
                let end = min(start + 3000, content.count)
                let answer = try await connection.ask(
                    .tusPatch(path, at: start, Array(content[start..<end])))
                #expect(answer.status == 204)
                #expect(answer.field("Upload-Offset") == "\(end)")
                #expect((answer.field("Upload-Expires") != nil) == (end < content.count))
                try await expectOffset(end, of: path, on: server)
            }
            let id = path.split(separator: "/").last ?? ""
            let status: SessionStatus = try await server.get("/uploads/sessions/\(id)").decoded()
            #expect(status.state == .completed)
            #expect(status.fileHashSha256 == SHA256Hasher.digest(of: content))
        }
    }

    @Test func `an append without Content-Length is accepted`() async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(5000, seed: 22)
            let path = try await server.tusUpload(byteCount: content.count)
            let answer = try await server.ask(
                HTTPRequestBytes.tusPatch(path, at: 0, [])
                    .chunked([Array(content[..<1000]), Array(content[1000...])]))
            #expect(answer.status == 204)
            #expect(try await server.get(path).body == content)
        }
    }

    @Test(arguments: ["text/plain", "application/octet-stream", "", nil])
    func `an append of another media type is refused`(type: String?) async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            let answer = try await server.ask(
                HTTPRequestBytes.tusPatch(path, at: 0, [1, 2, 3]).with([("Content-Type", type)]))
            try expectProblem(answer, .unsupportedMediaType)
            try await expectOffset(0, of: path, on: server)
        }
    }

    @Test(arguments: ["", "-1", "x", "1e3", "99999999999999999999", nil])
    func `a missing or malformed Upload-Offset is refused`(offset: String?) async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            let answer = try await server.ask(
                HTTPRequestBytes.tusPatch(path, at: 0, [1]).with([("Upload-Offset", offset)]))
            try expectProblem(answer, .badRequest)
        }
    }

    @Test(arguments: [0, 99, 101, 200, 9_000_000_000_000_000_000])
    func `an append at another offset is a conflict with the right offset`(offset: Int) async throws
    {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 200)
            _ = try await server.ask(.tusPatch(path, at: 0, sampleBytes(100)))
            let answer = try await server.ask(.tusPatch(path, at: offset, [1]))
            let problem = try expectProblem(answer, .offsetMismatch)
            #expect(problem.expectedOffset == 100)
            #expect(answer.field("Upload-Offset") == "100")
            try await expectOffset(100, of: path, on: server)
        }
    }

    @Test func `an append beyond the length is refused, and no byte of it counts`() async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            let answer = try await server.ask(.tusPatch(path, at: 0, [1, 2, 3, 4]))
            try expectProblem(answer, .fileTooLarge)
            try await expectOffset(0, of: path, on: server)
        }
    }

    @Test func `an append without Content-Length counts up to the length and is then refused`()
        async throws
    {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 5)
            _ = try await server.ask(.tusPatch(path, at: 0, [1, 2]))
            let answer = try await server.ask(
                HTTPRequestBytes.tusPatch(path, at: 2, []).chunked([[3, 4, 5, 6]]))
            let problem = try expectProblem(answer, .fileTooLarge)
            #expect(problem.maxBytes == 5)
            try await expectOffset(5, of: path, on: server)
            #expect(try await server.get(path).body == [1, 2, 3, 4, 5])
        }
    }

    @Test func `an append with another length is refused for good`() async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 5)
            let answer = try await server.ask(
                .tusPatch(path, at: 0, [1], [("Upload-Length", "6")]))
            try expectProblem(answer, .badRequest)
            try await expectOffset(0, of: path, on: server)
        }
    }

    @Test func `a finished upload accepts no more bytes`() async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            _ = try await server.ask(.tusPatch(path, at: 0, [1, 2, 3]))
            let again = try await server.ask(.tusPatch(path, at: 3, []))
            #expect(again.status == 204)
            #expect(again.field("Upload-Offset") == "3")
            try expectProblem(
                try await server.ask(.tusPatch(path, at: 0, [1, 2, 3])), .offsetMismatch)
            try expectProblem(try await server.ask(.tusPatch(path, at: 3, [4])), .fileTooLarge)
            #expect(try await server.get(path).body == [1, 2, 3])
        }
    }

    @Test(arguments: ["x", "00000000000000000000000000000000"])
    func `an unknown tus upload is not found`(name: String) async throws {
        try await SharedServer.use { server in
            let path = "/tus/\(name)"
            let head = try await server.tusHead(path)
            #expect(head.status == 404)
            #expect(head.field("Upload-Offset") == nil)
            for request in [
                HTTPRequestBytes.tusPatch(path, at: 0, [1]), .tus("DELETE", path),
                .tus("GET", path),
            ] {
                try expectProblem(try await server.ask(request), .sessionNotFound)
            }
        }
    }

    @Test func `bytes before a broken connection are kept`() async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(50_000, seed: 23)
            let path = try await server.tusUpload(byteCount: content.count)
            let request = HTTPRequestBytes.tusPatch(path, at: 0, content)
            let connection = try await server.connect()
            try await connection.send(request.head + content[..<20_000])
            try await connection.finishSending()
            // The server may answer or only close; the offset below decides.
            _ = try? await connection.answer()
            try await expectOffset(20_000, of: path, on: server)
            _ = try await server.ask(.tusPatch(path, at: 20_000, Array(content[20_000...])))
            #expect(try await server.get(path).body == content)
        }
    }

    /// There is no lock to wait for: the client has abandoned the hanging request.
    @Test func `a hanging append delays no request, and its bytes are kept`() async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(50_000, seed: 24)
            let path = try await server.tusUpload(byteCount: content.count)
            let hanging = try await server.connect()
            let request = HTTPRequestBytes.tusPatch(path, at: 0, content)
            try await hanging.send(request.with([("Expect", "100-continue")]).head)
            #expect(try await hanging.answer().status == 100)
            try await hanging.send(Array(content[..<20_000]))
            let clock = ContinuousClock()
            let start = clock.now
            let head = try await server.tusHead(path)
            // The server cuts a stalled body after ten seconds; this is sooner, even on a busy
            // machine.
            #expect(start.duration(to: clock.now) < .seconds(2))
            let offset = try #require(head.field("Upload-Offset").flatMap { Int($0) })
            let answer = try await server.ask(
                .tusPatch(path, at: offset, Array(content[offset...])))
            #expect(answer.status == 204)
            try expectProblem(try await hanging.answer(), .writerReplaced)
            #expect(try await server.get(path).body == content)
        }
    }

    @Test func `an append that expects 100 Continue is checked before its body`() async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            let request = HTTPRequestBytes.tusPatch(path, at: 1, [1])
                .with([("Expect", "100-continue")])
            let connection = try await server.connect()
            try await connection.send(request.head)
            try expectProblem(try await connection.answer(), .offsetMismatch)
        }
    }

    /// tus clients give up on 429 and 408, and retry on 503.
    @Test func `a busy server answers 503 to a tus append`() async throws {
        try await withServer {
            $0.engine.maxConcurrentWrites = 1
        } _: { server in
            let path = try await server.tusUpload(byteCount: 3)
            let other = try await server.tusUpload(byteCount: 3)
            let hanging = try await server.connect()
            try await hanging.send(
                HTTPRequestBytes.tusPatch(path, at: 0, [1, 2, 3])
                    .with([("Expect", "100-continue")]).head)
            #expect(try await hanging.answer().status == 100)
            let answer = try await server.ask(.tusPatch(other, at: 0, [1, 2, 3]))
            try expectProblem(answer, .unavailable)
            #expect(answer.field("Retry-After") != nil)
            try await hanging.close()
        }
    }

    /// Clients take an offset equal to the length for success.
    @Test func `asking for the offset finalizes an upload that has all bytes`()
        async throws
    {
        try await SharedServer.use { server in
            // The bytes come through the native protocol, so that no request asks for the file.
            let upload = try await server.begin([1, 2, 3])
            _ = try await server.ask(upload.put(0))
            #expect(try await server.status(of: upload).state == .open)
            let path = "/tus/\(upload.id)"
            try await expectOffset(3, of: path, on: server)
            #expect(try await server.status(of: upload).state == .completed)
        }
    }
}
