import KedgeHash
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// `PATCH` of a resumable upload.
@Suite(.timeLimit(.minutes(1))) struct ResumableUploadAppendTests {
    private static let recent = ResumableClient.all.filter { $0.interopVersion >= .interop6 }

    @Test(arguments: ResumableClient.all)
    func `consecutive appends make the file`(client: ResumableClient) async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(3000, seed: 3)
            let location = try await server.beginResumable(client, Array(content[..<1000]))
            let more = try await server.askResumable(
                client.append(
                    Array(content[1000..<1500]), to: location, at: 1000, completes: false))
            #expect(more.status == (client.interopVersion >= .interop6 ? 204 : 201))
            #expect(client.completeness(in: more) == false)
            #expect(more.field("Upload-Offset") == "1500")
            let last = try await server.askResumable(
                client.append(Array(content[1500...]), to: location, at: 1500, completes: true))
            #expect(last.status == 201)
            #expect(client.completeness(in: last) == true)
            #expect(try await server.fileBytes(last) == content)
        }
    }

    @Test(arguments: ResumableClient.all)
    func `an upload can be completed without bytes, and repeatedly`(client: ResumableClient)
        async throws
    {
        try await SharedServer.use { server in
            let content = sampleBytes(700, seed: 5)
            let location = try await server.beginResumable(client, content)
            let end = client.append([], to: location, at: 700, completes: true)
            let first = try await server.askResumable(end)
            #expect(first.status == 201)
            #expect(try await server.fileBytes(first) == content)
            let again = try await server.askResumable(end)
            #expect(again.status == 201)
            #expect(again.body == first.body)
            #expect(again.field("Location") == first.field("Location"))
            #expect(client.completeness(in: again) == true)
            let state = try await server.ask(client.head(location))
            #expect(client.completeness(in: state) == true)
            #expect(state.field("Upload-Offset") == "700")
            #expect(state.field("Content-Location") == first.field("Location"))
            #expect(
                state.field("Repr-Digest")
                    == DigestHeader.rfc9530(SHA256Hasher.digest(of: content)))
        }
    }

    @Test func `an upload can be completed several times at once`() async throws {
        try await SharedServer.use { server in
            let client = ResumableClient(interopVersion: .interop8)
            // Chance decides which request is first, so the test tries often. The server stops a
            // request that delays the others too long, and its client asks again.
            for seed in 0..<10 {
                let content = sampleBytes(70, seed: UInt64(seed))
                let location = try await server.beginResumable(client, content)
                let end = client.append([], to: location, at: 70, completes: true)
                var connections: [ClientConnection] = []
                for _ in 0..<6 { connections.append(try await server.connect()) }
                let bodies = try await withThrowingTaskGroup(of: HTTPAnswer.self) { group in
                    for connection in connections {
                        group.addTask { try await connection.ask(end) }
                    }
                    return try await group.reduce(into: Set<[UInt8]>()) { bodies, answer in
                        guard answer.status != 503 else { return }
                        #expect(answer.status == 201)
                        bodies.insert(answer.body)
                    }
                }
                #expect(bodies.count == 1)
            }
        }
    }

    @Test(arguments: ResumableClient.all, [0, 4, 6, 100])
    func `an append at another offset is refused`(
        client: ResumableClient, offset: Int
    ) async throws {
        try await SharedServer.use { server in
            let location = try await server.beginResumable(client, sampleBytes(5))
            let answer = try await server.askResumable(
                client.append([1, 2], to: location, at: offset, completes: true))
            #expect(answer.status == 409)
            #expect(answer.field("Upload-Offset") == "5")
            try expectUploadProblem(answer, "mismatching-upload-offset", since: 6, client)
            let text = String(decoding: answer.body, as: UTF8.self)
            if client.interopVersion >= .interop6 {
                #expect(text.contains("\"expected-offset\":5"))
                #expect(text.contains("\"provided-offset\":\(offset)"))
            }
            // The upload continues at the reported offset.
            let next = try await server.askResumable(
                client.append([1, 2], to: location, at: 5, completes: true))
            #expect(next.status == 201)
        }
    }

    @Test(arguments: ResumableClient.all)
    func `a complete upload accepts no more bytes`(client: ResumableClient) async throws {
        try await SharedServer.use { server in
            let location = try await server.beginResumable(client, [1])
            _ = try await server.askResumable(
                client.append([2], to: location, at: 1, completes: true))
            let more = try await server.askResumable(
                client.append([3], to: location, at: 2, completes: true))
            #expect(more.status == 400)
            let type = try more.decoded(ProblemDocument.self).type
            let name = type.split(separator: "#").last.map(String.init)
            switch client.interopVersion {
            case .interop3, .interop4, .interop5: #expect(type.hasPrefix("urn:kedge:error:"))
            case .interop6, .interop7, .interop8: #expect(name == "completed-upload")
            case .interop9, .final: #expect(name == "inconsistent-upload-length")
            }
            let state = try await server.ask(client.head(location))
            #expect(state.field("Upload-Offset") == "2")
        }
    }

    @Test(arguments: ResumableClient.all)
    func `an append needs its media type since draft version 6`(client: ResumableClient)
        async throws
    {
        try await SharedServer.use { server in
            let location = try await server.beginResumable(client)
            let append = client.append([1], to: location, at: 0, completes: true)
                .with([("Content-Type", "text/plain")])
            let answer = try await server.askResumable(append)
            if client.interopVersion >= .interop6 {
                try expectProblem(answer, .unsupportedMediaType)
                #expect(answer.field("Accept-Patch") == "application/partial-upload")
            } else {
                #expect(answer.status == 201)
            }
        }
    }

    @Test(arguments: recent)
    func `an append beyond the announced length is refused`(client: ResumableClient) async throws {
        try await SharedServer.use { server in
            let location = try await server.beginResumable(
                client, [1, 2], [("Upload-Length", "4")])
            let answer = try await server.askResumable(
                client.append([3, 4, 5], to: location, at: 2, completes: false))
            #expect(answer.status == 400)
            try expectUploadProblem(answer, "inconsistent-upload-length", since: 7, client)
            let state = try await server.ask(client.head(location))
            #expect(state.status == (client.interopVersion == .interop6 ? 204 : 404))
        }
    }

    @Test(arguments: recent)
    func `an append without Content-Length beyond the announced length is refused`(
        client: ResumableClient
    ) async throws {
        try await SharedServer.use { server in
            let location = try await server.beginResumable(
                client, [1, 2], [("Upload-Length", "4")])
            let append = client.append([], to: location, at: 2, completes: true)
            let answer = try await server.askResumable(append.chunked([[3, 4], [5, 6, 7]]))
            #expect(answer.status == 400)
            try expectUploadProblem(answer, "inconsistent-upload-length", since: 7, client)
            let state = try await server.ask(client.head(location))
            #expect(state.status == (client.interopVersion == .interop6 ? 204 : 404))
        }
    }

    @Test(arguments: recent)
    func `completing an upload before its announced length is refused, and the upload goes on`(
        client: ResumableClient
    ) async throws {
        try await SharedServer.use { server in
            let location = try await server.beginResumable(
                client, [1, 2], [("Upload-Length", "4")])
            let early = try await server.askResumable(
                client.append([], to: location, at: 2, completes: true))
            #expect(early.status == 400)
            try expectUploadProblem(early, "inconsistent-upload-length", since: 7, client)
            let answer = try await server.askResumable(
                client.append([3, 4], to: location, at: 2, completes: true))
            #expect(try await server.fileBytes(answer) == [1, 2, 3, 4])
        }
    }

    @Test(arguments: recent)
    func `an append can announce the length, which cannot change afterwards`(
        client: ResumableClient
    ) async throws {
        try await SharedServer.use { server in
            let location = try await server.beginResumable(client, [1])
            let append = client.append([2], to: location, at: 1, completes: false)
            _ = try await server.askResumable(append.with([("Upload-Length", "3")]))
            let state = try await server.ask(client.head(location))
            #expect(state.field("Upload-Length") == "3")
            let other = client.append([3], to: location, at: 2, completes: false)
                .with([("Upload-Length", "9")])
            #expect(try await server.askResumable(other).status == 400)
        }
    }

    @Test func `an append without a valid offset or completeness is refused`() async throws {
        try await SharedServer.use { server in
            let client = ResumableClient(interopVersion: .interop8)
            let location = try await server.beginResumable(client)
            let append = client.append([1], to: location, at: 0, completes: true)
            for field in ["Upload-Offset", "Upload-Complete"] {
                for value in [nil, "x", "-1"] {
                    let answer = try await server.askResumable(append.with([(field, value)]))
                    try expectProblem(answer, .badRequest)
                }
            }
        }
    }

    @Test(arguments: ["/uploads/resumable/nothing", "/uploads/resumable/\(SessionID.random())"])
    func `an unknown resumable upload is not found`(location: String) async throws {
        try await SharedServer.use { server in
            let client = ResumableClient(interopVersion: .interop8)
            #expect(try await server.ask(client.head(location)).status == 404)
            let append = client.append([1], to: location, at: 0, completes: true)
            try expectProblem(try await server.askResumable(append), .sessionNotFound)
            let delete = HTTPRequestBytes("DELETE", location)
            try expectProblem(try await server.ask(delete), .sessionNotFound)
        }
    }
}
