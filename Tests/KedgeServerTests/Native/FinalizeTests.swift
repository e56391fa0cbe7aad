import KedgeModel
import KedgeTesting
import Testing

/// `POST /uploads/sessions/{sessionId}/finalize`.
@Suite(.timeLimit(.minutes(1))) struct FinalizeTests {
    private static func complete(
        on server: RunningServer, digest: SHA256Digest? = nil
    ) async throws -> Upload {
        let upload = try await server.begin(
            sampleBytes(2500), mimeType: "text/plain", digest: digest)
        for index in [2, 0, 1] { _ = try await server.ask(upload.put(index)) }
        return upload
    }

    /// R63, R65, R66: the server computes the hash and compares it with the request's, if there is
    /// one.
    @Test(arguments: [false, true])
    func `a complete session becomes a file`(saysDigest: Bool) async throws {
        try await SharedServer.use { server in
            let upload = try await Self.complete(on: server)
            let answer = try await server.ask(
                upload.finalize(saysDigest ? upload.digest : nil))
            #expect(answer.status == 200)
            let file = try answer.decoded(FinalizeResponse.self)
            #expect(file.fileHashSha256 == upload.digest)
            #expect(file.size == 2500)
            let status = try await server.status(of: upload)
            #expect(status.state == .completed)
            #expect(status.remoteFileId == file.remoteFileId)
            #expect(status.fileHashSha256 == upload.digest)
            let download = try await server.get("/files/\(file.remoteFileId)")
            #expect(download.body == upload.content)
            #expect(download.field("ETag") == file.etag)
        }
    }

    @Test func `a repeated finalize gives the same answer, also after a restart`() async throws {
        let fixture = try await ServerEnvironment()
        let (upload, first) = try await fixture.withServer { server in
            let upload = try await Self.complete(on: server)
            let first = try await server.ask(upload.finalize())
            let second = try await server.ask(upload.finalize(upload.digest))
            #expect(second.status == 200)
            #expect(second.body == first.body)
            return (upload, first)
        }
        try await fixture.withServer { server in
            let third = try await server.ask(upload.finalize())
            #expect(third.status == 200)
            #expect(third.body == first.body)
        }
    }

    @Test func `concurrent finalizes make one file`() async throws {
        try await SharedServer.use { server in
            let upload = try await Self.complete(on: server)
            let bodies = try await withThrowingTaskGroup(of: [UInt8].self) { group in
                for _ in 0..<6 {
                    group.addTask { try await server.ask(upload.finalize()).body }
                }
                return try await group.reduce(into: Set<[UInt8]>()) { $0.insert($1) }
            }
            #expect(bodies.count == 1)
        }
    }

    /// R67: the client learns which chunks to send.
    @Test func `finalizing an incomplete session reports the missing chunks`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(7500))
            for index in [0, 1, 4] { _ = try await server.ask(upload.put(index)) }
            try await server.breakOff(5, of: upload, after: 999)
            let answer = try await expectUnchanged(upload, on: server) {
                try await server.ask(upload.finalize())
            }
            let problem = try expectProblem(answer, .missingChunks)
            #expect(problem.missingRanges == [[2, 3], [5, 7]])
        }
    }

    /// R18, R67.
    @Test func `finalizing with a wrong digest is refused, and the session goes on`() async throws {
        try await SharedServer.use { server in
            let upload = try await Self.complete(on: server)
            let answer = try await expectUnchanged(upload, on: server) {
                try await server.ask(upload.finalize(Self.foreign))
            }
            let problem = try expectProblem(answer, .integrityMismatch)
            #expect(problem.actualSha256 == upload.digest)
            #expect(problem.expectedSha256 == Self.foreign)
            #expect(try await server.ask(upload.finalize()).status == 200)
            try expectProblem(
                try await server.ask(upload.finalize(Self.foreign)), .integrityMismatch)
        }
    }

    /// R51.
    @Test func `the declared digest is checked as well`() async throws {
        try await SharedServer.use { server in
            let wrong = try await Self.complete(on: server, digest: Self.foreign)
            try expectProblem(
                try await server.ask(wrong.finalize(wrong.digest)), .integrityMismatch)
            let digest = wrong.digest
            let right = try await Self.complete(on: server, digest: digest)
            #expect(try await server.ask(right.finalize()).status == 200)
        }
    }

    @Test func `an empty file is finalized at once`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin([])
            let file = try await server.ask(upload.finalize()).decoded(FinalizeResponse.self)
            #expect(file.size == 0)
            #expect(file.fileHashSha256 == upload.digest)
        }
    }

    /// R81: two files, one blob; each has its own name.
    @Test func `two uploads of the same bytes are two files`() async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(1500, seed: 77)
            let first = try await server.upload(content, fileName: "first")
            let second = try await server.upload(content, fileName: "second")
            #expect(first.remoteFileId != second.remoteFileId)
            #expect(first.etag == second.etag)
            let gone = try await server.ask(
                HTTPRequestBytes("DELETE", "/files/\(first.remoteFileId)"))
            #expect(gone.status == 204)
            let left = try await server.get("/files/\(second.remoteFileId)")
            #expect(left.body == content)
        }
    }

    @Test(arguments: [
        "{", "[]", #""x""#, #"{"fileHashSha256":7}"#, #"{"fileHashSha256":"x"}"#,
        #"{"fileHashSha256":""}"#,
    ])
    func `a malformed finalize message is refused`(text: String) async throws {
        try await SharedServer.use { server in
            let upload = try await Self.complete(on: server)
            let request = HTTPRequestBytes.json("POST", upload.path + "/finalize", text)
            let answer = try await expectUnchanged(upload, on: server) {
                try await server.ask(request)
            }
            try expectProblem(answer, .badRequest)
            let untyped = request.with([("Content-Type", nil)])
            try expectProblem(try await server.ask(untyped), .unsupportedMediaType)
        }
    }

    @Test(arguments: ["{}", #"{"fileHashSha256":null}"#])
    func `a finalize message without a digest is accepted`(text: String) async throws {
        try await SharedServer.use { server in
            let upload = try await Self.complete(on: server)
            let answer = try await server.ask(
                .json("POST", upload.path + "/finalize", text))
            #expect(answer.status == 200)
        }
    }

    private static let foreign = SHA256Digest(bytes: [UInt8](repeating: 0xAB, count: 32))
}
