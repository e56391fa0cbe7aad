import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct SlowReaderTests {
    private static let content = sampleBytes(24 << 20)

    /// Uploads the file and returns its path.
    private func upload(to server: RunningServer) async throws -> String {
        let file = try await server.upload(Self.content, chunkSize: 4 << 20)
        return "/files/\(file.remoteFileId)"
    }

    /// Asks for a file and reads nothing of it.
    private func stall(at path: String, on server: RunningServer) async throws -> ClientConnection {
        let connection = try await server.connect()
        try await connection.send(HTTPRequestBytes("GET", path).head)
        return connection
    }

    /// Returns when the server has disconnected a reader.
    private func waitForCut(on server: RunningServer) async throws {
        while !server.fixture.log.lines.contains(where: { $0.metadata["readers"] != nil }) {
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    @Test func `a stalled reader is cut while connections are scarce`() async throws {
        try await withServer {
            $0.maxConnections = 4
            $0.answerWindow = .seconds(1)
        } _: { server in
            let connection = try await stall(at: try await upload(to: server), on: server)
            try await waitForCut(on: server)
            #expect(try await connection.untilClosed().count < Self.content.count)
        }
    }

    @Test func `a reader that was cut gets the rest with a Range`() async throws {
        try await withServer {
            $0.maxConnections = 4
            $0.answerWindow = .seconds(1)
        } _: { server in
            let path = try await upload(to: server)
            let connection = try await stall(at: path, on: server)
            try await waitForCut(on: server)
            let first = try await connection.answer()
            #expect(first.status == 200 && !first.isWhole)
            let count = first.body.count
            let rest = try await server.get(path, [("Range", "bytes=\(count)-")])
            #expect(rest.status == 206 && rest.isWhole)
            #expect(
                rest.field("Content-Range")
                    == "bytes \(count)-\(Self.content.count - 1)/\(Self.content.count)")
            // Compared apart: a failure would print megabytes.
            let isSame = first.body + rest.body == Self.content
            #expect(isSame)
        }
    }

    @Test func `a stalled reader continues while connections are free`()
        async throws
    {
        try await withServer {
            $0.maxConnections = 1000
            $0.answerWindow = .seconds(1)
        } _: { server in
            let connection = try await stall(at: try await upload(to: server), on: server)
            // Long enough for the server to judge the reader several times.
            try await Task.sleep(for: .seconds(5))
            let answer = try await connection.answer()
            #expect(answer.status == 200 && answer.body.count == Self.content.count)
        }
    }
}
