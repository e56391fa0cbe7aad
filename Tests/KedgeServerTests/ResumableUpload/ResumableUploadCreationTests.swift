import KedgeEngine
import KedgeModel
import KedgeServer
import KedgeTesting
import Logging
import Testing

/// `POST /files` as the beginning of a resumable upload.
@Suite(.timeLimit(.minutes(1))) struct ResumableUploadCreationTests {
    @Test(arguments: ResumableClient.versioned)
    func `a new upload gets its address before the body and the file after it`(
        client: ResumableClient
    ) async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(3000)
            let connection = try await server.connect()
            let request = client.create(
                content, completes: true,
                [("Content-Disposition", "inline; filename=\"a b.bin\""), ("Content-Type", "a/b")])
            try await connection.send(request.head)
            let interim = try await connection.answer()
            #expect(interim.status == 104)
            #expect(
                interim.field("Upload-Draft-Interop-Version")
                    == client.interopVersion.interopVersion.map(String.init))
            let location = try #require(interim.field("Location"))
            #expect(location.hasPrefix("/uploads/resumable/"))
            let limit = interim.field("Upload-Limit")
            if client.interopVersion >= .interop6 {
                let members = StructuredField.dictionary(try #require(limit)) ?? [:]
                let age = client.interopVersion == .interop6 ? "expires" : "max-age"
                #expect(Set(members.keys) == ["max-size", age])
            } else {
                #expect(limit == nil)
            }
            try await connection.send(content)
            let answer = try await connection.finalAnswer()
            #expect(answer.status == 201)
            #expect(client.completeness(in: answer) == true)
            let file = try answer.decoded(FinalizeResponse.self)
            #expect(answer.field("Location") == "/files/\(file.remoteFileId)")
            let stored = try await server.get("/files/\(file.remoteFileId)")
            #expect(stored.body == content)
            #expect(stored.field("Content-Type") == "a/b")
            #expect(stored.field("Content-Disposition")?.contains("a b.bin") == true)
        }
    }

    @Test func `a configured upload target takes resumable uploads like the default one`()
        async throws
    {
        try await withServer {
            $0.uploadTargets = EndpointPath.list("/videos, /api/v2/photos/") ?? []
        } _: { server in
            let client = try #require(ResumableClient.all.last)
            for path in ["/videos", "/api/v2/photos"] {
                let options = try await server.ask(HTTPRequestBytes("OPTIONS", path))
                #expect(options.field("Allow") == "OPTIONS, POST")
                #expect(options.field("Upload-Limit")?.contains("max-size=") == true)
                let answer = try await server.askResumable(
                    client.create(
                        sampleBytes(1000), at: path, completes: false, [("Upload-Length", "1001")]))
                #expect(answer.status == 201)
                let upload = try #require(answer.field("Location"))
                let last = try await server.askResumable(
                    client.append([7], to: upload, at: 1000, completes: true))
                let file = try last.decoded(FinalizeResponse.self)
                #expect(
                    try await server.get("/files/\(file.remoteFileId)").body
                        == sampleBytes(1000) + [7])
            }
            #expect(try await server.get("/videos").status == 405)
        }
    }

    @Test(arguments: ResumableClient.all)
    func `an incomplete first part makes an upload and no file`(client: ResumableClient)
        async throws
    {
        try await SharedServer.use { server in
            let answer = try await server.askResumable(
                client.create(sampleBytes(1000), completes: false, [("Upload-Length", "5000")]))
            #expect(answer.status == 201)
            #expect(client.completeness(in: answer) == false)
            #expect(answer.field("Upload-Offset") == "1000")
            let receipt = try answer.decoded(UploadReceipt.self)
            #expect(receipt.receivedBytes == 1000)
            #expect(answer.field("Location") == "/uploads/resumable/\(receipt.sessionId)")
            let state = try await server.ask(client.head(try #require(answer.field("Location"))))
            #expect(state.status == 204)
            #expect(client.completeness(in: state) == false)
            #expect(state.field("Upload-Offset") == "1000")
            #expect(
                state.field("Upload-Length") == (client.interopVersion >= .interop6 ? "5000" : nil))
            #expect(state.field("Cache-Control") == "no-store")
            #expect((state.field("Upload-Limit") != nil) == (client.interopVersion >= .interop6))
        }
    }

    @Test(arguments: ResumableClient.all)
    func `an upload can begin with no bytes`(client: ResumableClient) async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(10)
            let location = try await server.beginResumable(client)
            let answer = try await server.askResumable(
                client.append(content, to: location, at: 0, completes: true))
            #expect(answer.status == 201)
            #expect(try await server.fileBytes(answer) == content)
        }
    }

    @Test(arguments: ResumableClient.all)
    func `an empty upload makes an empty file`(client: ResumableClient) async throws {
        try await SharedServer.use { server in
            let answer = try await server.askResumable(client.create([], completes: true))
            #expect(answer.status == 201)
            #expect(client.completeness(in: answer) == true)
            #expect(try await server.fileBytes(answer) == [])
        }
    }

    @Test(arguments: [ResumableUploadVersion.interop8, .final])
    func `a creation repeated with its Idempotency-Key finds the upload`(
        interopVersion: ResumableUploadVersion
    ) async throws {
        try await SharedServer.use { server in
            let client = ResumableClient(interopVersion: interopVersion)
            let content = sampleBytes(1000, seed: 8)
            let key = [("Idempotency-Key", SessionID.random().text), ("Upload-Length", "1000")]
            let request = client.create(content, completes: true, key)
            let connection = try await server.connect()
            try await connection.send(request.head + content.prefix(300))
            try await connection.finishSending()
            try expectProblem(try await connection.finalAnswer(), .unavailable)
            let found = try await server.askResumable(request)
            #expect(found.status == 201)
            #expect(client.completeness(in: found) == false)
            #expect(found.field("Upload-Offset") == "300")
            let location = try #require(found.field("Location"))
            let last = try await server.askResumable(
                client.append(Array(content[300...]), to: location, at: 300, completes: true))
            #expect(try await server.fileBytes(last) == content)
            // A complete upload gives its file.
            let again = try await server.askResumable(request)
            #expect(again.body == last.body)
            #expect(client.completeness(in: again) == true)
            let other = client.create([1], completes: true, [key[0], ("Upload-Length", "1")])
            try expectProblem(try await server.askResumable(other), .idempotencyConflict)
        }
    }

    @Test(
        arguments: ResumableClient.versioned.filter { $0.interopVersion >= .interop6 },
        [true, false])
    func `lengths that contradict each other are refused`(
        client: ResumableClient, completes: Bool
    ) async throws {
        try await SharedServer.use { server in
            let fields = [("Upload-Length", completes ? "4" : "2")]
            let answer = try await server.askResumable(
                client.create([1, 2, 3], completes: completes, fields))
            #expect(answer.status == 400)
            try expectUploadProblem(answer, "inconsistent-upload-length", since: 7, client)
        }
    }

    @Test(arguments: ResumableClient.versioned)
    func `an upload that is too large is refused with the limits`(client: ResumableClient)
        async throws
    {
        try await withServer {
            $0.engine.maxFileSize = 10
        } _: { server in
            let answer = try await server.askResumable(
                client.create(sampleBytes(11), completes: true))
            try expectProblem(answer, .fileTooLarge)
            #expect(
                answer.field("Upload-Limit")?.contains("max-size=10")
                    == (client.interopVersion >= .interop6 ? true : nil))
        }
    }

    @Test(arguments: ResumableClient.versioned)
    func `bytes before a broken connection are kept, and the rest makes the file`(
        client: ResumableClient
    ) async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(5000, seed: 7)
            let connection = try await server.connect()
            let request = client.create(content, completes: true)
            try await connection.send(request.head + content.prefix(2000))
            let location = try #require(try await connection.answer().field("Location"))
            // The answer comes once the bytes are saved.
            try await connection.finishSending()
            // Clients resume after this status, and not after one below 500.
            let broken = try await connection.finalAnswer()
            try expectProblem(broken, .unavailable)
            // Still, it is no error of the service that an operator has to look at.
            let id = try #require(broken.field("X-Request-Id"))
            let lines = server.fixture.log.lines.filter { $0.metadata["request.id"] == "\(id)" }
            #expect(lines.count == 1)
            #expect(lines.first?.level == .info)
            #expect(lines.first?.metadata["error.reason"] == "LENGTH_MISMATCH")
            let state = try await server.ask(client.head(location))
            #expect(state.field("Upload-Offset") == "2000")
            #expect(client.completeness(in: state) == false)
            let rest = Array(content[2000...])
            let answer = try await server.askResumable(
                client.append(rest, to: location, at: 2000, completes: true))
            #expect(answer.status == 201)
            #expect(try await server.fileBytes(answer) == content)
        }
    }
}

/// Expects the problem type of the drafts, or Kedge's own in versions that do not have it.
func expectUploadProblem(
    _ answer: HTTPAnswer, _ name: String, since version: Int64, until last: Int64 = 100,
    _ client: ResumableClient, _ location: SourceLocation = #_sourceLocation
) throws {
    #expect(answer.field("Content-Type") == "application/problem+json", sourceLocation: location)
    let problem = try answer.decoded(ProblemDocument.self)
    let isNamed = (version...last).contains(client.interopVersion.rawValue)
    let type =
        isNamed
        ? "https://iana.org/assignments/http-problem-types#\(name)"
        : "urn:kedge:error:\(problem.code)"
    #expect(problem.type == type, sourceLocation: location)
    #expect(problem.status == answer.status, sourceLocation: location)
    #expect(client.completeness(in: answer) == false, sourceLocation: location)
}
