import KedgeModel
import KedgeTesting
import Testing

/// `DELETE /uploads/sessions/{sessionId}`.
@Suite(.timeLimit(.minutes(1))) struct SessionCancelTests {
    private static func cancel(
        _ upload: Upload, on server: RunningServer
    ) async throws -> HTTPAnswer {
        try await server.ask(HTTPRequestBytes("DELETE", upload.path))
    }

    @Test func `a canceled session reports its state and accepts nothing more`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            _ = try await server.ask(upload.put(0))
            let answer = try await Self.cancel(upload, on: server)
            #expect(answer.status == 204)
            #expect(answer.body.isEmpty)
            #expect(try await server.status(of: upload).state == .canceled)
            try expectProblem(try await server.ask(upload.put(1)), .sessionClosed)
            try expectProblem(try await server.ask(upload.finalize()), .sessionClosed)
        }
    }

    @Test func `canceling a session is idempotent`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(10))
            for _ in 0..<3 {
                let answer = try await Self.cancel(upload, on: server)
                #expect(answer.status == 204)
            }
        }
    }

    @Test func `canceling a session stops its writer`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            let writer = try await server.hold(0, of: upload)
            #expect(try await Self.cancel(upload, on: server).status == 204)
            try expectProblem(try await writer.answer(), .sessionClosed)
        }
    }

    @Test func `a completed session cannot be canceled, and its file stays`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(500))
            _ = try await server.ask(upload.put(0))
            let file = try await server.ask(upload.finalize()).decoded(FinalizeResponse.self)
            try expectProblem(try await Self.cancel(upload, on: server), .sessionClosed)
            let answer = try await server.get("/files/\(file.remoteFileId)")
            #expect(answer.body == upload.content)
        }
    }
}
