import KedgeHash
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// The upload as a resource: its offset, completion and limits, and access through other protocols.
@Suite(.timeLimit(.minutes(1))) struct ResumableUploadStateTests {
    private static let client = ResumableClient(interopVersion: .interop8)

    @Test func `an upload uses the draft version of its creation when a request names none`()
        async throws
    {
        try await SharedServer.use { server in
            let old = ResumableClient(interopVersion: .interop3)
            let location = try await server.beginResumable(old, [1, 2])
            let state = try await server.ask(HTTPRequestBytes("HEAD", location))
            #expect(state.field("Upload-Incomplete") == "?1")
            #expect(state.field("Upload-Draft-Interop-Version") == nil)
            // A request that names a version gets that version.
            let other = try await server.ask(Self.client.head(location))
            #expect(other.field("Upload-Complete") == "?0")
            #expect(other.field("Upload-Draft-Interop-Version") == "8")
        }
    }

    @Test func `GET reports the state of an upload as HEAD does`() async throws {
        try await SharedServer.use { server in
            let location = try await server.beginResumable(Self.client, [1, 2])
            let state = try await server.get(location, Self.client.version)
            #expect(state.status == 204)
            #expect(state.field("Upload-Offset") == "2")
            #expect(state.field("Upload-Complete") == "?0")
        }
    }

    @Test func `asking for the offset ends a hanging append, and its bytes stay`() async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(1000, seed: 9)
            let location = try await server.beginResumable(Self.client)
            let hanging = try await server.hold(
                Self.client.append(content, to: location, at: 0, completes: true))
            try await hanging.send(Array(content[..<400]))
            let start = ContinuousClock.now
            let state = try await server.ask(Self.client.head(location))
            // Sooner than the server would have cut a stalled body.
            #expect(start.duration(to: .now) < .seconds(10))
            #expect(state.field("Upload-Offset") == "400")
            // If its client is still there, it asks for the offset and resumes after this status.
            try expectProblem(try await hanging.finalAnswer(to: "PATCH"), .unavailable)
            let answer = try await server.askResumable(
                Self.client.append(
                    Array(content[400...]), to: location, at: 400, completes: true))
            #expect(try await server.fileBytes(answer) == content)
        }
    }

    @Test func `a newer append takes over from a hanging one, whose bytes stay`() async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(1000, seed: 11)
            let location = try await server.beginResumable(Self.client)
            let hanging = try await server.hold(
                Self.client.append(content, to: location, at: 0, completes: true))
            try await hanging.send(Array(content[..<400]))
            let rest = Array(content[400...])
            let start = ContinuousClock.now
            let newer = try await server.hold(
                Self.client.append(rest, to: location, at: 400, completes: true))
            // Sooner than the server would have cut a stalled body.
            #expect(start.duration(to: .now) < .seconds(10))
            try await newer.send(rest)
            let answer = try await newer.finalAnswer(to: "PATCH")
            #expect(try await server.fileBytes(answer) == content)
        }
    }

    @Test func `an append can resume at the offset of a refusal, also while another one hangs`()
        async throws
    {
        try await SharedServer.use { server in
            let content = sampleBytes(1000, seed: 12)
            let location = try await server.beginResumable(Self.client)
            let hanging = try await server.hold(
                Self.client.append(content, to: location, at: 0, completes: true))
            try await hanging.send(Array(content[..<400]))
            let refused = try await server.askResumable(
                Self.client.append([1], to: location, at: 77, completes: false))
            #expect(refused.status == 409)
            #expect(refused.field("Upload-Offset") == "400")
            let answer = try await server.askResumable(
                Self.client.append(
                    Array(content[400...]), to: location, at: 400, completes: true))
            #expect(try await server.fileBytes(answer) == content)
        }
    }

    @Test func `canceling an upload ends a hanging append`() async throws {
        try await SharedServer.use { server in
            let location = try await server.beginResumable(Self.client)
            let hanging = try await server.hold(
                Self.client.append(sampleBytes(10), to: location, at: 0, completes: true))
            let delete = HTTPRequestBytes("DELETE", location, Self.client.version)
            #expect(try await server.ask(delete).status == 204)
            try expectProblem(try await hanging.finalAnswer(to: "PATCH"), .sessionNotFound)
        }
    }

    /// Another protocol completed the upload meanwhile.
    @Test func `an append to an upload that another protocol completed is refused as complete`()
        async throws
    {
        try await SharedServer.use { server in
            let location = try await server.beginResumable(
                Self.client, [1, 2], [("Upload-Length", "2")])
            let hanging = try await server.hold(
                Self.client.append([], to: location, at: 2, completes: true).chunked([]))
            let id = location.split(separator: "/").last ?? ""
            let finalize = HTTPRequestBytes("POST", "/uploads/sessions/\(id)/finalize")
            #expect(try await server.ask(finalize).status == 200)
            let answer = try await hanging.finalAnswer(to: "PATCH")
            #expect(answer.status == 400)
            let problem = try answer.decoded(ProblemDocument.self)
            #expect(problem.type.hasSuffix("#completed-upload"))
        }
    }

    @Test func `a canceled upload is not found`() async throws {
        try await SharedServer.use { server in
            let location = try await server.beginResumable(Self.client, [1])
            let delete = HTTPRequestBytes("DELETE", location, Self.client.version)
            #expect(try await server.ask(delete).status == 204)
            let state = try await server.ask(Self.client.head(location))
            #expect(state.status == 404)
            #expect(state.field("Upload-Offset") == nil)
            let append = Self.client.append([2], to: location, at: 1, completes: true)
            try expectProblem(try await server.askResumable(append), .sessionNotFound)
        }
    }

    @Test func `an expired upload is gone`() async throws {
        try await withServer { server in
            let location = try await server.beginResumable(Self.client, [1])
            server.fixture.clock.advance(by: .seconds(30 * 24 * 3600))
            let state = try await server.ask(Self.client.head(location))
            #expect(state.status == 410)
            #expect(state.field("Upload-Offset") == nil)
        }
    }

    @Test func `errors use the draft version of the upload's creation, too`() async throws {
        try await SharedServer.use { server in
            let old = ResumableClient(interopVersion: .interop3)
            let location = try await server.beginResumable(old, [1, 2])
            let append = HTTPRequestBytes("PATCH", location, [("Upload-Offset", "2")], body: [3])
            let answer = try await server.askResumable(append)
            try expectProblem(answer, .badRequest)
            #expect(answer.field("Upload-Incomplete") == "?1")
            #expect(answer.field("Upload-Complete") == nil)
        }
    }

    /// `?0` would be wrong, and `?1` would mean that the answer is the one of the file resource.
    @Test(arguments: ResumableClient.all)
    func `errors about a complete upload have no completeness field`(
        client: ResumableClient
    ) async throws {
        try await SharedServer.use { server in
            let location = try await server.beginResumable(client, [1, 2])
            _ = try await server.askResumable(
                client.append([], to: location, at: 2, completes: true))
            let early = try await server.askResumable(
                client.append([3], to: location, at: 1, completes: true))
            #expect(early.status == 409)
            #expect(early.field("Upload-Offset") == "2")
            let late = try await server.askResumable(
                client.append([3], to: location, at: 2, completes: true))
            #expect(late.status == 400)
            let delete = try await server.ask(HTTPRequestBytes("DELETE", location))
            try expectProblem(delete, .sessionClosed)
            for answer in [early, late, delete] {
                #expect(answer.field("Upload-Complete") == nil)
                #expect(answer.field("Upload-Incomplete") == nil)
            }
        }
    }

    @Test func `a final upload has no offset before its parts are complete`() async throws {
        try await SharedServer.use { server in
            let part = try await server.tusUpload([
                ("Upload-Length", "3"), ("Upload-Concat", "partial"),
            ])
            let whole = try await server.tusUpload([("Upload-Concat", "final;\(part)")])
            let location = "/uploads/resumable/\(whole.split(separator: "/").last ?? "")"
            let state = try await server.ask(Self.client.head(location))
            #expect(state.status == 204)
            #expect(state.field("Upload-Complete") == "?0")
            #expect(state.field("Upload-Offset") == nil)
            let append = Self.client.append([1], to: location, at: 0, completes: false)
            try expectProblem(try await server.askResumable(append), .uploadIsFinal)
            _ = try await server.ask(.tusPatch(part, at: 0, [1, 2, 3]))
            #expect(try await server.get(whole).body == [1, 2, 3])
            let complete = try await server.ask(Self.client.head(location))
            #expect(complete.field("Upload-Complete") == "?1")
            #expect(complete.field("Upload-Offset") == "3")
        }
    }

    @Test(arguments: ResumableClient.all)
    func `OPTIONS announces the limits of uploads`(client: ResumableClient) async throws {
        try await SharedServer.use { server in
            let location = try await server.beginResumable(client)
            for target in ["/files", location] {
                let answer = try await server.ask(
                    HTTPRequestBytes("OPTIONS", target, client.version))
                #expect(answer.status == 200)
                let isRecent = client.interopVersion >= .interop6
                #expect((answer.field("Upload-Limit") != nil) == isRecent)
                #expect(
                    answer.field("Accept-Patch")
                        == (isRecent ? "application/partial-upload" : nil))
                #expect(answer.field("Allow")?.contains("OPTIONS") == true)
            }
        }
    }

    @Test func `a native session can continue as a resumable upload`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500, seed: 13))
            _ = try await server.ask(upload.put(0))
            let location = "/uploads/resumable/\(upload.id)"
            let state = try await server.ask(Self.client.head(location))
            #expect(state.field("Upload-Offset") == "1000")
            #expect(state.field("Upload-Length") == "2500")
            let answer = try await server.askResumable(
                Self.client.append(
                    Array(upload.content[1000...]), to: location, at: 1000, completes: true))
            #expect(try answer.decoded(FinalizeResponse.self).fileHashSha256 == upload.digest)
            #expect(try await server.status(of: upload).state == .completed)
        }
    }

    @Test func `a resumable upload is a session and can be finalized natively`() async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(1234, seed: 17)
            let location = try await server.beginResumable(
                Self.client, content, [("Upload-Length", "1234")])
            let id = try #require(location.split(separator: "/").last)
            let session = "/uploads/sessions/\(id)"
            let status: SessionStatus = try await server.get(session).decoded()
            #expect(status.state == .open)
            let file = try await server.ask(HTTPRequestBytes("POST", "\(session)/finalize"))
            #expect(
                try file.decoded(FinalizeResponse.self).fileHashSha256
                    == SHA256Hasher.digest(of: content))
            let state = try await server.ask(Self.client.head(location))
            #expect(state.field("Upload-Complete") == "?1")
        }
    }
}
