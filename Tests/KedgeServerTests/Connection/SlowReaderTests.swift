import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct SlowReaderTests {
    private static let byteCount = 24 << 20

    /// Asks for a file and reads nothing of it.
    private func stall(on server: RunningServer) async throws -> ClientConnection {
        let file = try await server.upload(
            sampleBytes(Self.byteCount), chunkSize: 4 << 20)
        let connection = try await server.connect()
        try await connection.send(HTTPRequestBytes("GET", "/files/\(file.remoteFileId)").head)
        return connection
    }

    @Test func `a stalled reader is cut while connections are scarce`() async throws {
        try await withServer {
            $0.maxConnections = 4
            $0.answerWindow = .seconds(1)
        } _: { server in
            let connection = try await stall(on: server)
            while !server.fixture.log.lines.contains(where: { $0.metadata["readers"] != nil }) {
                try await Task.sleep(for: .milliseconds(100))
            }
            #expect(try await connection.untilClosed().count < Self.byteCount)
        }
    }

    @Test func `a stalled reader continues while connections are free`()
        async throws
    {
        try await withServer {
            $0.maxConnections = 1000
            $0.answerWindow = .seconds(1)
        } _: { server in
            let connection = try await stall(on: server)
            // Long enough for the server to judge the reader several times.
            try await Task.sleep(for: .seconds(5))
            let answer = try await connection.answer()
            #expect(answer.status == 200 && answer.body.count == Self.byteCount)
        }
    }
}
