import KedgeEngine
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct OpenSessionTests {
    /// Lends a server at its limit of open uploads, all of which have bytes.
    private func withFullServer(_ body: (RunningServer) async throws -> Void) async throws {
        try await withServer {
            $0.engine.maxOpenSessions = 2
        } _: { server in
            for seed in 1...2 {
                let upload = try await server.begin(sampleBytes(2500, seed: UInt64(seed)))
                #expect(try await server.ask(upload.put(0)).status < 300)
            }
            try await body(server)
        }
    }

    private func expectLater(_ answer: HTTPAnswer) {
        #expect(answer.field("Retry-After").flatMap { Int($0) } ?? 0 >= 10)
    }

    @Test func `a server at its limit of open uploads refuses sessions and whole files`()
        async throws
    {
        try await withFullServer { server in
            let session = try await server.ask(
                .createSession(CreateSessionRequest(fileName: "a", fileSize: 1)))
            try expectProblem(session, .tooManySessions)
            expectLater(session)
            let file = try await server.ask(HTTPRequestBytes("POST", "/files", body: [1]))
            try expectProblem(file, .tooManySessions)
            expectLater(file)
        }
    }

    /// tus clients give up on 429.
    @Test func `a server at its limit of open uploads answers 503 to tus clients`() async throws {
        try await withFullServer { server in
            let answer = try await server.ask(.tus("POST", "/tus/", [("Upload-Length", "1")]))
            try expectProblem(answer, .unavailable)
            expectLater(answer)
        }
    }

    @Test(arguments: ResumableClient.versioned)
    func `a server at its limit of open uploads answers 503 to clients of resumable uploads`(
        client: ResumableClient
    ) async throws {
        try await withFullServer { server in
            let answer = try await server.ask(client.create([1], completes: true))
            try expectProblem(answer, .unavailable)
            expectLater(answer)
        }
    }

    /// All requests come from one address, whose oldest empty upload makes room.
    @Test func `a flood of empty uploads ends no upload with bytes`() async throws {
        try await withServer {
            $0.engine.maxOpenSessions = 3
        } _: { server in
            let upload = try await server.begin(sampleBytes(2500))
            _ = try await server.ask(upload.put(0))
            for number in 0..<20 {
                let answer = try await server.ask(
                    number.isMultiple(of: 2)
                        ? .tus("POST", "/tus/", [("Upload-Length", "9")])
                        : .createSession(CreateSessionRequest(fileName: "a", fileSize: 1)))
                #expect(answer.status == 201)
            }
            let status = try await server.get(upload.path).decoded(SessionStatus.self)
            #expect(status.receivedBytes == 1000)
        }
    }
}
