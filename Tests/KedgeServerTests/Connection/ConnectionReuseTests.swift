import KedgeModel
import KedgeTesting
import Testing

/// Several requests on one connection, one after the other and all at once.
@Suite(.timeLimit(.minutes(1))) struct ConnectionReuseTests {
    @Test func `ordinary answers leave the connection open`() async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            let upload = try await server.begin(sampleBytes(2500))
            let file = try await server.upload(sampleBytes(10))
            let requests = [
                HTTPRequestBytes("GET", "/healthz"), HTTPRequestBytes("GET", "/nowhere"),
                HTTPRequestBytes("PATCH", "/files"), upload.put(0), upload.put(1),
                HTTPRequestBytes("GET", upload.path), upload.finalize(), upload.put(2),
                upload.finalize(), HTTPRequestBytes("HEAD", "/files/\(file.remoteFileId)"),
                HTTPRequestBytes("GET", "/files/\(file.remoteFileId)"),
                HTTPRequestBytes("HEAD", "/nowhere"),
                HTTPRequestBytes("DELETE", "/files/\(file.remoteFileId)"),
                HTTPRequestBytes("GET", "/healthz"),
            ]
            var statuses: [Int] = []
            for request in requests {
                let answer = try await connection.ask(request)
                statuses.append(answer.status)
                #expect(answer.field("Connection")?.lowercased() != "close")
            }
            #expect(
                statuses
                    == [200, 404, 405, 201, 201, 200, 409, 201, 200, 200, 200, 404, 204, 200])
        }
    }

    @Test func `pipelined requests are answered in order`() async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            let targets = ["/healthz", "/nowhere", "/files", "/readyz", "/files?limit=0"]
            var all: [UInt8] = []
            for number in 0..<20 {
                let target = targets[number % targets.count]
                all += HTTPRequestBytes("GET", target, [("X-Request-Id", "r\(number)")]).bytes
            }
            try await connection.send(all)
            for number in 0..<20 {
                let answer = try await connection.answer()
                #expect(answer.field("X-Request-Id") == "r\(number)")
                #expect(answer.status == [200, 404, 200, 200, 400][number % targets.count])
            }
        }
    }

    @Test func `pipelined bodies are accepted in order`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            let connection = try await server.connect()
            var all: [UInt8] = []
            for index in 0..<3 { all += upload.put(index).bytes }
            try await connection.send(all + upload.finalize().bytes)
            for status in [201, 201, 201, 200] {
                #expect(try await connection.answer().status == status)
            }
        }
    }

    /// A client may send the next request with its body before it has read the last answer.
    @Test func `a connection with a pipelined body stays open after the first answer`() async throws
    {
        try await SharedServer.use { server in
            let content = [UInt8](repeating: 7, count: 8 << 20)
            let file = try await server.ask(HTTPRequestBytes("POST", "/files", body: content))
                .decoded(FinalizeResponse.self)
            let upload = try await server.begin(sampleBytes(2500))
            let connection = try await server.connect()
            let get = HTTPRequestBytes("GET", "/files/\(file.remoteFileId)")
            let put = upload.put(0)
            try await connection.send(get.bytes + put.head + upload.chunk(0)[..<500])
            let first = try await connection.answer()
            #expect(first.body == content)
            try await connection.send(Array(upload.chunk(0)[500...]))
            // A connection that ended counts as no answer.
            let second: Int?
            do {
                second = try await connection.answer().status
            } catch ClientConnection.Failure.ended {
                second = nil
            }
            #expect(first.field("Connection") == nil)
            #expect(second == 201)
        }
    }

    @Test func `a request with Connection close is answered, and the connection ends`() async throws
    {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            let answer = try await connection.ask(
                HTTPRequestBytes("GET", "/healthz", [("Connection", "close")]))
            #expect(answer.status == 200)
            let rest = try await connection.untilClosed()
            #expect(rest.isEmpty)
        }
    }
}
