import KedgeEngine
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Graceful shutdown, as after SIGTERM: no new work, a drain for work under way, and no loss.
@Suite(.timeLimit(.minutes(2))) struct ShutdownTests {
    @Test func `a chunk that arrives during the drain is accepted`() async throws {
        try await ServerEnvironment { $0.drainTimeout = .seconds(30) }.withServer { server in
            let upload = try await server.begin(sampleBytes(2500))
            let writer = try await server.hold(0, of: upload)
            await server.beginStopping()
            await #expect(throws: ClientConnection.Failure.refused) {
                while true { _ = try await server.connect() }
            }
            try await writer.send(upload.chunk(0))
            #expect(try await writer.answer().status == 201)
            try await server.untilEnded()
        }
    }

    /// The server saves a partial, and the next process continues from there.
    @Test func `a chunk that hangs at shutdown is saved, and continues after the restart`()
        async throws
    {
        let fixture = try await ServerEnvironment()
        let upload = try await fixture.withServer { server in
            let upload = try await server.begin(sampleBytes(2500))
            _ = try await server.ask(upload.put(2))
            let writer = try await server.hold(0, of: upload)
            try await writer.send(Array(upload.chunk(0)[..<600]))
            await server.beginStopping()
            try expectProblem(try await writer.answer(), .unavailable)
            try await server.untilEnded()
            return upload
        }
        try await fixture.withServer { server in
            let status = try await server.status(of: upload)
            #expect(status.receivedChunks == [2])
            #expect(status.partialChunks == [PartialChunk(index: 0, receivedBytes: 600)])
            #expect(try await server.ask(upload.put(0, from: 600)).status == 201)
            #expect(try await server.ask(upload.put(1)).status == 201)
            let file = try await server.ask(upload.finalize()).decoded(FinalizeResponse.self)
            #expect(file.fileHashSha256 == upload.digest)
        }
    }

    @Test(arguments: ["", "GET /healthz HTTP/1.1\r\nHost:"])
    func `connections without a request do not delay shutdown`(text: String) async throws {
        try await ServerEnvironment { $0.drainTimeout = .seconds(60) }.withServer { server in
            let connection = try await server.connect()
            _ = try await connection.ask(HTTPRequestBytes("GET", "/healthz"))
            try await connection.send(text)
            let clock = ContinuousClock()
            let start = clock.now
            await server.beginStopping()
            try await server.untilEnded()
            #expect(start.duration(to: clock.now) < .seconds(30))
            try await connection.untilClosed()
        }
    }

    /// A stalled reader would otherwise keep the process alive until it is killed.
    @Test func `a stalled download is cut at the end of the drain`() async throws {
        try await withServer { server in
            let content = [UInt8](repeating: 7, count: 64 << 20)
            let file = try await server.ask(HTTPRequestBytes("POST", "/files", body: content))
                .decoded(FinalizeResponse.self)
            let reader = try await server.connect()
            try await reader.send(HTTPRequestBytes("GET", "/files/\(file.remoteFileId)"))
            try await reader.readSome()
            await server.beginStopping()
            let hasEnded = try await withThrowingTaskGroup(of: Bool.self) { group in
                group.addTask {
                    try await server.untilEnded()
                    return true
                }
                group.addTask {
                    // The drain takes one second; this is the bound of the wait.
                    try await Task.sleep(for: .seconds(10))
                    return false
                }
                let hasEnded = try await group.next() ?? false
                group.cancelAll()
                if !hasEnded { try await reader.close(resetting: true) }
                return hasEnded
            }
            #expect(hasEnded)
        }
    }
}
