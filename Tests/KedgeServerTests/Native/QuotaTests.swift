import KedgeEngine
import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Limits of owners, in each protocol.
@Suite(.timeLimit(.minutes(1))) struct QuotaTests {
    private func withLimits<Result: Sendable>(
        _ quota: QuotaLimits, _ body: (RunningServer) async throws -> Result
    ) async throws -> Result {
        try await withServer {
            $0.engine.quota = quota
        } _: { server in
            try await body(server)
        }
    }

    private func expectQuota(
        _ answer: HTTPAnswer, limit: Int64, used: Int64, reserved: Int64,
        _ location: SourceLocation = #_sourceLocation
    ) throws {
        let problem = try expectProblem(answer, .quotaExceeded, location)
        #expect(problem.limitBytes == limit, sourceLocation: location)
        #expect(problem.usedBytes == used, sourceLocation: location)
        #expect(problem.reservedBytes == reserved, sourceLocation: location)
    }

    private func owner(_ server: RunningServer, _ fields: [(String, String)] = []) async throws
        -> AccountDescription
    {
        try await server.get("/me", fields).decoded()
    }

    @Test func `an upload beyond the quota is refused in every protocol, and writes nothing`()
        async throws
    {
        try await withLimits(QuotaLimits(storedBytes: 10_000)) { server in
            _ = try await server.upload(sampleBytes(4000))
            _ = try await server.begin(sampleBytes(3500, seed: 2))
            let create = CreateSessionRequest(fileName: "a", fileSize: 2501)
            let answers = [
                try await server.ask(.createSession(create)),
                try await server.ask(
                    HTTPRequestBytes("POST", "/files", body: sampleBytes(2501, seed: 3))),
                try await server.ask(.tus("POST", "/tus/", [("Upload-Length", "2501")])),
            ]
            for answer in answers {
                try expectQuota(answer, limit: 10_000, used: 4000, reserved: 3500)
            }
            for client in ResumableClient.versioned {
                let answer = try await server.askResumable(
                    client.create(sampleBytes(2501, seed: 4), completes: true))
                try expectQuota(answer, limit: 10_000, used: 4000, reserved: 3500)
            }
            let usage = try await owner(server).usage
            #expect(usage == .init(storedBytes: 4000, reservedBytes: 3500, openSessions: 1))
            #expect(
                try await server.ask(.createSession(.init(fileName: "a", fileSize: 2500))).status
                    == 201)
        }
    }

    @Test func `a deleted file and a canceled upload give their room back`() async throws {
        try await withLimits(QuotaLimits(storedBytes: 5000)) { server in
            let file = try await server.upload(sampleBytes(3000))
            let upload = try await server.begin(sampleBytes(2000, seed: 2))
            let create = try HTTPRequestBytes.createSession(.init(fileName: "a", fileSize: 1))
            try expectQuota(
                try await server.ask(create), limit: 5000, used: 3000, reserved: 2000)
            _ = try await server.ask(HTTPRequestBytes("DELETE", upload.path))
            _ = try await server.ask(HTTPRequestBytes("DELETE", "/files/\(file.remoteFileId)"))
            #expect(
                try await owner(server).usage
                    == .init(storedBytes: 0, reservedBytes: 0, openSessions: 0))
            _ = try await server.upload(sampleBytes(5000, seed: 3))
        }
    }

    @Test func `an upload of unknown size keeps what fits and is refused beyond`() async throws {
        try await withLimits(QuotaLimits(storedBytes: 3000)) { server in
            let path = try await server.tusUpload([("Upload-Defer-Length", "1")])
            let first = try await server.ask(.tusPatch(path, at: 0, sampleBytes(2000)))
            #expect(first.status == 204)
            let beyond = try await server.ask(.tusPatch(path, at: 2000, sampleBytes(1001)))
            try expectQuota(beyond, limit: 3000, used: 0, reserved: 3000)
            try await expectOffset(2000, of: path, on: server)
            let length = try await server.ask(
                .tusPatch(path, at: 2000, [], [("Upload-Length", "3001")]))
            try expectQuota(length, limit: 3000, used: 0, reserved: 3000)
            let rest = try await server.ask(
                .tusPatch(path, at: 2000, sampleBytes(1000), [("Upload-Length", "3000")]))
            #expect(rest.status == 204)
            #expect(
                try await owner(server).usage
                    == .init(storedBytes: 3000, reservedBytes: 0, openSessions: 0))
        }
    }

    @Test(arguments: ResumableClient.versioned)
    func `a resumable upload of unknown length is refused beyond the quota`(
        client: ResumableClient
    ) async throws {
        try await withLimits(QuotaLimits(storedBytes: 3000)) { server in
            let location = try await server.beginResumable(client, sampleBytes(2000))
            let beyond = try await server.askResumable(
                client.append(sampleBytes(1001), to: location, at: 2000, completes: false))
            try expectQuota(beyond, limit: 3000, used: 0, reserved: 3000)
            let rest = try await server.askResumable(
                client.append(sampleBytes(1000), to: location, at: 2000, completes: true))
            #expect([200, 201].contains(rest.status))
            #expect(try await owner(server).usage.storedBytes == 3000)
        }
    }

    @Test func `limits of unfinished uploads and of the file size have answers of their own`()
        async throws
    {
        try await withLimits(QuotaLimits(openSessions: 1, fileBytes: 2000)) { server in
            let large = try await server.ask(
                .createSession(.init(fileName: "a", fileSize: 2001)))
            #expect(try expectProblem(large, .fileTooLarge).maxBytes == 2000)
            let upload = try await server.begin(sampleBytes(2000))
            let second = try await server.ask(.createSession(.init(fileName: "a", fileSize: 0)))
            try expectProblem(second, .tooManySessions)
            #expect(second.field("Retry-After").flatMap { Int($0) } ?? 0 > 0)
            // tus clients give up on 429.
            let tus = try await server.ask(.tus("POST", "/tus/", [("Upload-Length", "0")]))
            try expectProblem(tus, .unavailable)
            let status = try await server.status(of: upload)
            #expect(status.state == .open)
        }
    }

    @Test func `a repeated create with its key is answered when the quota is used up`()
        async throws
    {
        try await withLimits(QuotaLimits(storedBytes: 100, openSessions: 1)) { server in
            let create = try HTTPRequestBytes.createSession(
                .init(fileName: "a", fileSize: 100), [("Idempotency-Key", "one")])
            var ids: Set<SessionID> = []
            for _ in 0..<3 {
                let answer = try await server.ask(create)
                #expect(answer.status == 201)
                ids.insert(try answer.decoded(CreateSessionResponse.self).sessionId)
            }
            #expect(ids.count == 1)
        }
    }

    @Test func `a concatenation needs room for its parts and its file until it is complete`()
        async throws
    {
        try await withLimits(QuotaLimits(storedBytes: 10_000)) { server in
            let content = sampleBytes(5000)
            let parts = [
                try await server.tusPart(Array(content[..<3000])),
                try await server.tusPart(Array(content[3000...])),
            ]
            let extra = try await server.begin([1])
            let whole = HTTPRequestBytes.tus(
                "POST", "/tus/", [("Upload-Concat", "final;" + parts.joined(separator: " "))])
            try expectQuota(
                try await server.ask(whole), limit: 10_000, used: 0, reserved: 5001)
            _ = try await server.ask(HTTPRequestBytes("DELETE", extra.path))
            let answer = try await server.ask(whole)
            #expect(answer.status == 201)
            let file = try await server.get(try #require(answer.tusPath))
            #expect(file.body == content)
            let usage = try await owner(server).usage
            #expect(usage == .init(storedBytes: 5000, reservedBytes: 0, openSessions: 2))
            let latest = server.fixture.clock.now().advanced(by: .seconds(3601))
            // The engine learns of the end of its partial uploads just after the file is there.
            let isShortened = try await eventually {
                let expiry = try await server.tusHead(parts[0]).field("Upload-Expires")
                return expiry.flatMap { Timestamp(httpDate: $0) }.map { $0 <= latest } ?? false
            }
            #expect(isShortened)
            server.fixture.clock.advance(by: .seconds(3700))
            #expect(try await server.tusHead(parts[0]).status == 410)
        }
    }

    @Test func `refusals are counted by their limit`() async throws {
        try await withLimits(QuotaLimits(storedBytes: 10, openSessions: 1, fileBytes: 20)) {
            server in
            for size in [21, 11, 5, 5] as [Int64] {
                _ = try await server.ask(.createSession(.init(fileName: "a", fileSize: size)))
            }
            let text = String(decoding: try await server.get("/metrics").body, as: UTF8.self)
            for kind in ["stored_bytes", "open_sessions", "file_bytes"] {
                #expect(text.contains(#"kedge_quota_refusals_total{kind="\#(kind)"} 1"#))
            }
        }
    }

    @Test func `an owner sees its own usage and limits, with any scope`() async throws {
        try await withServer {
            $0.identityMode = .tokens
            $0.engine.quota = QuotaLimits(storedBytes: 10_000)
        } _: { server in
            let writer = try await server.makeToken([.uploadsWrite])
            let create = try HTTPRequestBytes.createSession(
                .init(fileName: "a", fileSize: 9999), writer.fields)
            #expect(try await server.ask(create).status == 201)
            let me = try await owner(server, writer.fields)
            #expect(me.owner == "alice" && me.principal == "token")
            #expect(me.scopes == ["uploads:write"])
            #expect(me.limits == .init(storedBytes: 10_000))
            #expect(me.usage == .init(storedBytes: 0, reservedBytes: 9999, openSessions: 1))
            let other = try await server.makeToken([.filesRead], owner: "bob")
            let usage = try await owner(server, other.fields).usage
            #expect(usage == .init(storedBytes: 0, reservedBytes: 0, openSessions: 0))
            #expect(try await server.get("/me").status == 401)
        }
    }

    @Test func `racing requests of two protocols stay within the quota`() async throws {
        try await withLimits(QuotaLimits(storedBytes: 20 * 100, openSessions: 50)) { server in
            let created = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<120 {
                    group.addTask {
                        let request =
                            number.isMultiple(of: 2)
                            ? try HTTPRequestBytes.createSession(
                                .init(fileName: "a", fileSize: 100))
                            : HTTPRequestBytes.tus("POST", "/tus/", [("Upload-Length", "100")])
                        return try await server.ask(request).status == 201
                    }
                }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(created == 20)
            #expect(try await owner(server).usage.reservedBytes == 2000)
        }
    }
}
