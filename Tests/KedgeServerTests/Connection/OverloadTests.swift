import KedgeEngine
import KedgeModel
import KedgeServer
import KedgeTesting
import Logging
import Testing

/// More bodies than places: the server refuses the surplus at once, and the other bodies are not
/// harmed.
@Suite(.timeLimit(.minutes(2))) struct OverloadTests {
    private static let roomCount = 4
    private static let surplus = roomCount..<(roomCount + 6)
    private static let chunkByteCount = 100_000

    private func withFewRooms(
        _ body: (RunningServer, Upload) async throws -> Void
    ) async throws {
        try await withServer {
            $0.engine.maxConcurrentWrites = Self.roomCount
            // A body with a place keeps it, however slow a busy machine is.
            $0.minBodyBytesPerSecond = 0
        } _: { server in
            let content = sampleBytes(Self.surplus.upperBound * Self.chunkByteCount)
            try await body(
                server, try await server.begin(content, chunkSize: Self.chunkByteCount))
        }
    }

    /// Takes every place, beginning with a chunk; each writer has sent half of its chunk.
    private func takeAllRooms(
        _ server: RunningServer, _ upload: Upload, from first: Int = 0
    ) async throws -> [ClientConnection] {
        var writers: [ClientConnection] = []
        for index in first..<(first + Self.roomCount) {
            let writer = try await server.hold(index, of: upload)
            try await writer.send(Array(upload.chunk(index)[..<(Self.chunkByteCount / 2)]))
            writers.append(writer)
        }
        return writers
    }

    // Admission looks at the head alone.
    @Test(arguments: [true, false])
    func `bodies beyond the limit are refused unread, and those under way are not harmed`(
        waitsForInvitation: Bool
    ) async throws {
        try await withFewRooms { server, upload in
            let writers = try await takeAllRooms(server, upload)
            try await withThrowingTaskGroup(of: HTTPAnswer.self) { group in
                for index in Self.surplus {
                    group.addTask {
                        try await Self.begin(
                            upload.put(index), on: server, waitsForInvitation: waitsForInvitation)
                    }
                }
                for try await answer in group {
                    try expectProblem(answer, .busy)
                    #expect(answer.field("Retry-After").flatMap { Int($0) } ?? 0 > 0)
                    #expect(answer.field("Connection") == "close")
                }
            }
            expectUnread(Self.surplus.count, server)
            let status = try await server.status(of: upload)
            #expect(status.receivedChunks == [])
            #expect(status.partialChunks.allSatisfy { !Self.surplus.contains($0.index) })

            for (index, writer) in writers.enumerated() {
                try await writer.send(Array(upload.chunk(index)[(Self.chunkByteCount / 2)...]))
                #expect(try await writer.answer().status == 201)
            }
            // The places are free again, and the server accepts the same requests.
            for index in Self.surplus {
                #expect(try await server.ask(upload.put(index)).status == 201)
            }
            let file = try await server.ask(upload.finalize()).decoded(FinalizeResponse.self)
            #expect(file.fileHashSha256 == upload.digest)
        }
    }

    /// Sends the head, and a few bytes of the body unless the client waits for 100 Continue;
    /// returns the answer.
    private static func begin(
        _ put: HTTPRequestBytes, on server: RunningServer, waitsForInvitation: Bool
    ) async throws -> HTTPAnswer {
        let connection = try await server.connect()
        let announced = put.with([
            ("Content-Length", String(put.body?.count ?? 0)),
            ("Expect", waitsForInvitation ? "100-continue" : nil),
        ])
        try await connection.send(announced.head)
        if !waitsForInvitation { try await connection.send(Array((put.body ?? [])[..<10])) }
        let answer = try await connection.answer()
        // Nothing follows: it was the answer to the whole request.
        #expect(try await connection.untilClosed() == [])
        return answer
    }

    /// Expects log entries for so many requests that were refused without reading their bodies.
    private func expectUnread(_ count: Int, _ server: RunningServer) {
        let refused = server.fixture.log.lines.filter {
            $0.metadata["error.code"] == "\(ErrorCode.busy.rawValue)"
        }
        #expect(refused.count == count)
        #expect(refused.allSatisfy { $0.metadata["body.bytes"] == nil })
    }

    // Refusals and reads take no place.
    @Test func `a full server answers reads, and all places are free when the writers leave`()
        async throws
    {
        try await withFewRooms { server, upload in
            let writers = try await takeAllRooms(server, upload)
            for index in Self.surplus {
                try expectProblem(try await server.ask(upload.put(index)), .busy)
            }
            #expect(try await server.get("/readyz").status == 200)
            #expect(try await server.get("/files").status == 200)
            for writer in writers {
                try await writer.finishSending()
                try expectProblem(try await writer.answer(), .lengthMismatch)
            }
            for writer in try await takeAllRooms(server, upload, from: Self.roomCount) {
                try await writer.close()
            }
        }
    }
}
