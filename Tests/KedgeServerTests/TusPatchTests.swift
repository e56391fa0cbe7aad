import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeServer
import Testing

/// `HEAD` and `PATCH` on an upload.
@Suite(.timeLimit(.minutes(1))) struct `tus: appending` {
    @Test func `each append goes on where the last ended, and the last one makes the file`()
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

    @Test func `a body without an announced length is taken`() async throws {
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
    func `a body of another type is refused`(type: String?) async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            let answer = try await server.ask(
                HTTPRequestBytes.tusPatch(path, at: 0, [1, 2, 3]).with([("Content-Type", type)]))
            try expectProblem(answer, .unsupportedMediaType)
            try await expectOffset(0, of: path, on: server)
        }
    }

    @Test(arguments: ["", "-1", "x", "1e3", "99999999999999999999", nil])
    func `an offset that is none is refused`(offset: String?) async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            let answer = try await server.ask(
                HTTPRequestBytes.tusPatch(path, at: 0, [1]).with([("Upload-Offset", offset)]))
            try expectProblem(answer, .badRequest)
        }
    }

    @Test(arguments: [0, 99, 101, 200, 9_000_000_000_000_000_000])
    func `another offset is a conflict that tells the right one`(offset: Int) async throws {
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

    @Test func `a body that goes beyond the end is refused before it is read`() async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            let answer = try await server.ask(.tusPatch(path, at: 0, [1, 2, 3, 4]))
            try expectProblem(answer, .fileTooLarge)
            try await expectOffset(0, of: path, on: server)
        }
    }

    @Test func `one of no announced length is refused at the end, and what came before counts`()
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

    @Test func `another length than was told is refused for good`() async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 5)
            let answer = try await server.ask(
                .tusPatch(path, at: 0, [1], [("Upload-Length", "6")]))
            try expectProblem(answer, .badRequest)
            try await expectOffset(0, of: path, on: server)
        }
    }

    @Test func `a finished upload takes nothing more, as often as it is asked to`() async throws {
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
    func `an unknown upload is not found`(name: String) async throws {
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

    @Test func `what came before a connection broke is kept`() async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(50_000, seed: 23)
            let path = try await server.tusUpload(byteCount: content.count)
            let request = HTTPRequestBytes.tusPatch(path, at: 0, content)
            let connection = try await server.connect()
            try await connection.send(request.head + content[..<20_000])
            try await connection.finishSending()
            _ = try? await connection.answer()
            try await expectOffset(20_000, of: path, on: server)
            _ = try await server.ask(.tusPatch(path, at: 20_000, Array(content[20_000...])))
            #expect(try await server.get(path).body == content)
        }
    }

    /// No lock to wait for: the client that asks has given the hanging request up.
    @Test func `a hanging append holds nobody up, and nothing of it is lost`() async throws {
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
            // A body that hangs is cut after ten seconds; this is sooner, on a busy machine too.
            #expect(start.duration(to: clock.now) < .seconds(2))
            let offset = try #require(head.field("Upload-Offset").flatMap { Int($0) })
            let answer = try await server.ask(
                .tusPatch(path, at: offset, Array(content[offset...])))
            #expect(answer.status == 204)
            try expectProblem(try await hanging.answer(), .writerReplaced)
            #expect(try await server.get(path).body == content)
        }
    }

    @Test func `Expect is answered after the checks that need no bytes`() async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            let request = HTTPRequestBytes.tusPatch(path, at: 1, [1])
                .with([("Expect", "100-continue")])
            let connection = try await server.connect()
            try await connection.send(request.head)
            try expectProblem(try await connection.answer(), .offsetMismatch)
        }
    }

    /// Clients give up on 429, and on 408; on 503 they try again.
    @Test func `a busy server asks to try again`() async throws {
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

    /// Clients take offset and length that are equal for success.
    @Test func `an upload whose process ended before the file is one when it is asked for`()
        async throws
    {
        try await SharedServer.use { server in
            // The bytes come through another door, so that nothing asks for the file.
            let upload = try await server.begin([1, 2, 3])
            _ = try await server.ask(upload.put(0))
            #expect(try await server.status(of: upload).state == .open)
            let path = "/tus/\(upload.id)"
            try await expectOffset(3, of: path, on: server)
            #expect(try await server.status(of: upload).state == .completed)
        }
    }
}
