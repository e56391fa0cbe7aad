import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// `GET /uploads/sessions/{sessionId}`: the bytes that a client need not send again.
@Suite(.timeLimit(.minutes(1))) struct SessionStatusTests {
    @Test func `unfinished sessions are listed newest first, page by page`() async throws {
        try await withServer { server in
            var ids: [SessionID] = []
            for number in 0..<3 {
                server.fixture.clock.advance(by: .seconds(1))
                let upload = try await server.begin(
                    sampleBytes(2500), fileName: "\(number)", path: number == 1 ? "a/b" : nil)
                if number == 1 { _ = try await server.ask(upload.put(0)) }
                ids.append(upload.id)
            }
            _ = try await server.upload([1])
            var listed: [SessionSummary] = []
            var target: String? = "/uploads/sessions?limit=2"
            while let next = target {
                let page = try await server.get(next).decoded(SessionList.self)
                listed += page.sessions
                target = page.next.map { "/uploads/sessions?limit=2&after=\($0)" }
            }
            #expect(listed.map(\.sessionId) == ids.reversed())
            #expect(listed.map(\.receivedBytes) == [0, 1000, 0])
            #expect(listed.map(\.path) == [nil, "a/b", nil])
            #expect(listed.allSatisfy { $0.state == .open && $0.fileSize == 2500 })
            for query in ["limit=0", "limit=101", "limit=x", "after=zz", "after="] {
                try expectProblem(
                    try await server.get("/uploads/sessions?\(query)"), .badRequest)
            }
        }
    }

    /// R61, R12: with gaps, as lists and as ranges.
    @Test func `the status of a session has every durable byte`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(
                sampleBytes(6500), fileName: "ship.log", digest: SHA256Digest(hex: Self.digest))
            for index in [5, 0, 2, 1] { _ = try await server.ask(upload.put(index)) }
            try await server.breakOff(4, of: upload, after: 700)
            let answer = try await server.get(upload.path)
            #expect(answer.status == 200)
            #expect(answer.field("Cache-Control") == "no-store")
            let status = try answer.decoded(SessionStatus.self)
            #expect(status.sessionId == upload.id)
            #expect(status.state == .open)
            #expect(status.fileName == "ship.log")
            #expect(status.fileSize == 6500)
            #expect(status.chunkSize == 1000)
            #expect(status.totalChunks == 7)
            #expect(status.receivedChunks == [0, 1, 2, 5])
            #expect(status.receivedRanges == [[0, 2], [5, 5]])
            #expect(status.partialChunks == [PartialChunk(index: 4, receivedBytes: 700)])
            #expect(status.receivedBytes == 4700)
            #expect(status.fileHashSha256?.hex == Self.digest)
            #expect(status.remoteFileId == nil)
        }
    }

    /// R61: the short form has the same content.
    @Test func `a status with ranges omits the list of chunks`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(6500))
            for index in [5, 0, 2, 1] { _ = try await server.ask(upload.put(index)) }
            try await server.breakOff(4, of: upload, after: 700)
            let full = try await server.get(upload.path)
            let answer = try await server.get(upload.path + "?chunks=ranges")
            #expect(answer.status == 200)
            #expect(answer.field("Content-Type") == "application/json")
            let list = #""receivedChunks":[0,1,2,5],"#
            let texts = [full, answer].map { String(decoding: $0.body, as: UTF8.self) }
            #expect(texts[0].contains(list))
            #expect(texts[1] == texts[0].replacing(list, with: ""))
            #expect(texts[1].contains(#""receivedRanges":[[0,2],[5,5]]"#))
        }
    }

    /// R13: a client without records can compare its file with the session.
    @Test func `a status with digests has those of all received bytes`() async throws {
        try await SharedServer.use { server in
            let bytes = sampleBytes(6500)
            let upload = try await server.begin(bytes)
            for index in [5, 0, 2] { _ = try await server.ask(upload.put(index)) }
            try await server.breakOff(4, of: upload, after: 700)
            let ranges = try await server.get(upload.path + "?chunks=ranges")
            let answer = try await server.get(upload.path + "?chunks=digests")
            #expect(answer.status == 200)
            let status = try answer.decoded(SessionStatus.self)
            let digest = { SHA256Hasher.digest(of: Array(bytes[$0])) }
            #expect(
                status.receivedDigests == [
                    digest(0..<1000), digest(2000..<3000), digest(5000..<6000),
                ])
            #expect(
                status.partialChunks == [
                    PartialChunk(index: 4, receivedBytes: 700, sha256: digest(4000..<4700))
                ])
            let texts = [ranges, answer].map { String(decoding: $0.body, as: UTF8.self) }
            #expect(!texts[0].contains("igests") && !texts[0].contains("sha256"))
            #expect(!texts[1].contains("receivedChunks"))
        }
    }

    @Test(arguments: [
        "chunks", "chunks=", "chunks=list", "chunks=Ranges", "chunks=ranges%20", "chunks=digest",
        "chunks=ranges&chunks=all", "chunks=all&chunks=ranges", "chunks=ranges&chunks=digests",
    ])
    func `an unknown form of the chunk list is refused`(query: String) async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(10))
            try expectProblem(try await server.get(upload.path + "?" + query), .badRequest)
        }
    }

    @Test func `the status of a session is the same after a restart`() async throws {
        let fixture = try await ServerEnvironment()
        let (upload, before) = try await fixture.withServer { server in
            let upload = try await server.begin(sampleBytes(6500))
            for index in [3, 0] { _ = try await server.ask(upload.put(index)) }
            try await server.breakOff(1, of: upload, after: 999)
            return (upload, try await server.status(of: upload))
        }
        try await fixture.withServer { server in
            let after = try await server.status(of: upload)
            #expect(after == before)
            #expect(after.partialChunks == [PartialChunk(index: 1, receivedBytes: 999)])
        }
    }

    @Test(arguments: HostileText.identifiers)
    func `an unknown session id is not found`(id: String) async throws {
        try await SharedServer.use { server in
            let path = "/uploads/sessions/\(id)"
            try expectProblem(try await server.get(path), .sessionNotFound)
            try expectProblem(
                try await server.ask(HTTPRequestBytes("DELETE", path)), .sessionNotFound)
            try expectProblem(
                try await server.ask(HTTPRequestBytes("POST", path + "/finalize")),
                .sessionNotFound)
            var put = Upload(content: [1], chunkSize: 1, id: .random()).put(0)
            put.target = path + "/chunks/0"
            try expectProblem(try await server.ask(put), .sessionNotFound)
        }
    }

    /// R53, R128: a chunk extends the lifetime, a request for the status does not.
    @Test func `a session lives longer with each chunk, and then expires`() async throws {
        try await withServer { server in
            let clock = server.fixture.clock
            let lifetime = server.engine.configuration.sessionLifetime
            let upload = try await server.begin(sampleBytes(2500))
            let first = try await server.status(of: upload).expiresAt
            clock.advance(by: server.engine.configuration.emptySessionLifetime / 2)
            #expect(try await server.status(of: upload).expiresAt == first)
            _ = try await server.ask(upload.put(1))
            let second = try await server.status(of: upload).expiresAt
            #expect(second == clock.now().advanced(by: lifetime))
            clock.advance(by: lifetime + .seconds(1))
            try expectProblem(try await server.get(upload.path), .sessionExpired)
            try expectProblem(try await server.ask(upload.put(0)), .sessionExpired)
            try expectProblem(try await server.ask(upload.finalize()), .sessionExpired)
        }
    }

    private static let digest = String(repeating: "ab", count: 32)
}
