import KedgeEngine
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Interim responses while the body still arrives.
@Suite(.timeLimit(.minutes(1))) struct ResumableUploadInterimTests {
    @Test func `a client that expects 100 Continue first gets the address in a 104 response`()
        async throws
    {
        try await SharedServer.use { server in
            let client = ResumableClient(interopVersion: .interop8)
            let connection = try await server.connect()
            let request = client.create([1, 2, 3], completes: true, [("Expect", "100-continue")])
            try await connection.send(request.head)
            #expect(try await connection.answer().status == 104)
            #expect(try await connection.answer().status == 100)
            try await connection.send([1, 2, 3])
            #expect(try await connection.finalAnswer().status == 201)
        }
    }

    struct Way: Sendable {
        var policy: InterimPolicy
        var fields: [(String, String)] = []
        var hasInterim: Bool
    }

    @Test(arguments: [
        Way(policy: .auto, hasInterim: true),
        Way(policy: .auto, fields: [("Via", "1.1 proxy")], hasInterim: false),
        Way(policy: .auto, fields: [("Forwarded", "for=192.0.2.1")], hasInterim: false),
        Way(policy: .auto, fields: [("X-Forwarded-Port", "443")], hasInterim: false),
        Way(policy: .auto, fields: [("X-Real-IP", "192.0.2.1")], hasInterim: true),
        Way(policy: .always, hasInterim: true),
        Way(policy: .always, fields: [("Via", "1.1 proxy")], hasInterim: true),
        Way(policy: .never, hasInterim: false),
    ])
    func `104 responses follow the setting and the proxies on the way`(
        way: Way
    ) async throws {
        try await withServer {
            $0.interim = way.policy
        } _: { server in
            let client = ResumableClient(interopVersion: .interop8)
            let create = client.create([1, 2, 3], completes: false, way.fields)
            let connection = try await server.connect()
            try await connection.send(create)
            #expect(try await connection.answer().status == (way.hasInterim ? 104 : 201))
        }
    }

    @Test func `an append gets no progress reports when 104 responses are off`() async throws {
        try await withServer {
            $0.engine.defaultChunkSize = 64 << 10
            $0.interim = .never
        } _: { server in
            let client = ResumableClient(interopVersion: .interop8)
            let content = sampleBytes(256 << 10, seed: 24)
            let location = try await server.beginResumable(client)
            let connection = try await server.connect()
            let append = client.append(content, to: location, at: 0, completes: true)
            try await connection.send(append.head + content.prefix(200 << 10))
            // Twice the time until the first progress report.
            try await Task.sleep(for: .seconds(2))
            try await connection.send(Array(content[(200 << 10)...]))
            #expect(try await connection.answer().status == 201)
        }
    }

    @Test func `a refused creation gets no interim response`() async throws {
        try await SharedServer.use { server in
            let client = ResumableClient(interopVersion: .interop8)
            let request = client.create([1], completes: true, [("Upload-Length", "2")])
            let answer = try await server.ask(request)
            #expect(answer.status == 400)
        }
    }

    @Test func `a client without a draft version gets no interim response`() async throws {
        try await SharedServer.use { server in
            let client = ResumableClient(interopVersion: .final)
            for completes in [true, false] {
                let answer = try await server.ask(client.create([1], completes: completes))
                #expect(answer.status == 201)
                #expect(answer.field("Upload-Complete") == (completes ? "?1" : "?0"))
                #expect(answer.field("Upload-Draft-Interop-Version") == nil)
            }
        }
    }

    /// Part of the body is still missing, so the report can only be about durable bytes.
    @Test(arguments: ResumableClient.versioned.filter { $0.interopVersion.reportsProgress })
    func `a client gets progress reports while its body arrives`(client: ResumableClient)
        async throws
    {
        try await withServer {
            $0.engine.defaultChunkSize = 64 << 10
        } _: { server in
            let content = sampleBytes(256 << 10, seed: 21)
            let connection = try await server.connect()
            let request = client.create(content, completes: true)
            try await connection.send(request.head + content.prefix(200 << 10))
            let location = try #require(try await connection.answer().field("Location"))
            let progress = try await connection.answer()
            #expect(progress.status == 104)
            #expect(progress.field("Location") == nil)
            #expect(
                progress.field("Upload-Draft-Interop-Version")
                    == client.interopVersion.interopVersion.map(String.init))
            let offset = try #require(progress.field("Upload-Offset").flatMap { Int($0) })
            #expect((1...(200 << 10)).contains(offset))
            try await connection.send(Array(content[(200 << 10)...]))
            let answer = try await connection.finalAnswer()
            #expect(try await server.fileBytes(answer) == content)
            let state = try await server.ask(client.head(location))
            #expect(state.field("Upload-Offset") == "\(content.count)")
        }
    }

    /// A proxy may have dropped the 104.
    @Test func `a creation that is stopped gets the address of its upload`() async throws {
        try await SharedServer.use { server in
            let client = ResumableClient(interopVersion: .interop8)
            let content = sampleBytes(1000, seed: 31)
            let connection = try await server.connect()
            let create = client.create(content, completes: true)
            try await connection.send(
                create.with([("Content-Length", "1000")]).head + content.prefix(400))
            let location = try #require(try await connection.answer().field("Location"))
            #expect(try await server.ask(client.head(location)).field("Upload-Offset") == "400")
            let answer = try await connection.finalAnswer(to: "POST")
            try expectProblem(answer, .unavailable)
            #expect(answer.field("Location") == location)
            let rest = client.append(
                Array(content[400...]), to: location, at: 400, completes: true)
            let end = try await server.askResumable(rest)
            #expect(try await server.fileBytes(end) == content)
        }
    }

    /// Chunk 1 already has bytes that came through another protocol.
    @Test func `progress reports never exceed the bytes that the client has sent`() async throws {
        try await SharedServer.use { server in
            let client = ResumableClient(interopVersion: .interop8)
            let content = sampleBytes(192 << 10, seed: 22)
            let upload = try await server.begin(content, chunkSize: 64 << 10)
            try await server.breakOff(1, of: upload, after: 40_000)
            let connection = try await server.connect()
            let append = client.append(
                content, to: "/uploads/resumable/\(upload.id)", at: 0, completes: true)
            let sentCount = (64 << 10) + 10_000
            try await connection.send(append.head + content.prefix(sentCount))
            let progress = try await connection.answer()
            #expect(progress.status == 104)
            let offset = try #require(progress.field("Upload-Offset").flatMap { Int($0) })
            #expect((1...sentCount).contains(offset))
            try await connection.send(Array(content[sentCount...]))
            let answer = try await connection.finalAnswer()
            #expect(try await server.fileBytes(answer) == content)
        }
    }
}
