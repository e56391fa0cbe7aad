import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// The minimum rate of a body.
///
/// Serialized, because a sender needs enough processor time to keep its rate.
@Suite(.serialized, .timeLimit(.minutes(2))) struct OverloadRateTests {
    private static let minBytesPerSecond = 2000
    private static let content = sampleBytes(200_000)

    private func withMinimumRate(
        _ body: (RunningServer, Upload) async throws -> Void
    ) async throws {
        try await withServer {
            $0.minBodyBytesPerSecond = Self.minBytesPerSecond
        } _: { server in
            let upload = try await server.begin(Self.content, chunkSize: Self.content.count)
            try await body(server, upload)
        }
    }

    /// Sends at a rate until the condition holds; returns how many bytes of the body were sent.
    ///
    /// The amount due counts from the start, so a late turn sends more.
    private func send(
        _ upload: Upload, over connection: ClientConnection, bytesPerSecond: Int,
        until isOver: (_ elapsed: Duration) async throws -> Bool
    ) async throws -> Int {
        let start = ContinuousClock.now
        var sentCount = 0
        while true {
            let elapsed = start.duration(to: .now)
            let due = Int(elapsed / .seconds(1) * Double(bytesPerSecond))
            if due > sentCount {
                try await connection.send(Array(upload.content[sentCount..<due]))
                sentCount = due
            }
            if try await isOver(elapsed) { return sentCount }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    /// Unlike a silent body, it is never idle.
    @Test func `a body at half the minimum rate is cut, and resumes after its kept bytes`()
        async throws
    {
        try await withMinimumRate { server, upload in
            let connection = try await server.connect()
            try await connection.send(upload.put(0).head)
            let sentCount = try await send(
                upload, over: connection, bytesPerSecond: Self.minBytesPerSecond / 2
            ) { _ in
                // The server records so few bytes only at the end of a request.
                try await !server.status(of: upload).partialChunks.isEmpty
            }
            let answer = try await connection.answer()
            try expectProblem(answer, .requestTimeout)
            #expect(answer.field("Retry-After").flatMap { Int($0) } ?? 0 > 0)
            #expect(answer.field("Connection") == "close")

            let partial = try #require(try await server.status(of: upload).partialChunks.first)
            let keptCount = Int(partial.receivedBytes)
            #expect(keptCount <= sentCount)
            // The judged window brought nearly half of the required bytes.
            #expect(keptCount > Self.minBytesPerSecond)
            #expect(try await server.ask(upload.put(0, from: keptCount)).status == 201)
            let file = try await server.ask(upload.finalize()).decoded(FinalizeResponse.self)
            #expect(file.fileHashSha256 == upload.digest)
        }
    }

    /// Half above the minimum leaves room for late turns.
    @Test func `a body somewhat above the minimum rate is not cut`() async throws {
        try await withMinimumRate { server, upload in
            let connection = try await server.connect()
            try await connection.send(upload.put(0).head)
            // More than two of the ten-second windows over which a body is judged.
            let sentCount = try await send(
                upload, over: connection, bytesPerSecond: Self.minBytesPerSecond * 3 / 2
            ) { $0 >= .seconds(25) }
            try await connection.send(Array(upload.content[sentCount...]))
            #expect(try await connection.answer().status == 201)
            #expect(try await server.status(of: upload).receivedChunks == [0])
        }
    }
}
