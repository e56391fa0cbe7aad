import KedgeEngine
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Slow bodies, while others wait for their places.
@Suite(.timeLimit(.minutes(2))) struct SlowBodyTests {
    private static let placeCount = 4
    private static let chunkByteCount = 100_000
    private static let sentByteCount = 50_000

    private func withFewPlaces(
        _ body: (RunningServer, Upload) async throws -> Void
    ) async throws {
        try await withServer {
            $0.engine.maxConcurrentWrites = Self.placeCount
            $0.engine.slowBodyGrace = .milliseconds(100)
        } _: { server in
            let content = sampleBytes(8 * Self.chunkByteCount)
            try await body(
                server, try await server.begin(content, chunkSize: Self.chunkByteCount))
        }
    }

    /// Repeats the request until the server has a place, as clients do.
    private func insist(
        _ request: HTTPRequestBytes, on server: RunningServer
    ) async throws -> HTTPAnswer {
        while true {
            let answer = try await server.ask(request)
            if answer.status != 429 { return answer }
        }
    }

    @Test func `slow chunks make room for others and lose no byte`() async throws {
        try await withFewPlaces { server, upload in
            var writers: [ClientConnection] = []
            for index in 0..<Self.placeCount {
                let writer = try await server.hold(index, of: upload)
                try await writer.send(Array(upload.chunk(index)[..<Self.sentByteCount]))
                writers.append(writer)
            }
            #expect(try await insist(upload.put(4), on: server).status == 201)
            var stopped: [PartialChunk] = []
            while stopped.isEmpty {
                // The server records so few bytes only at the end of a body.
                stopped = try await server.status(of: upload).partialChunks
            }
            for partial in stopped {
                #expect(partial.receivedBytes == Int64(Self.sentByteCount))
                let answer = try await writers[partial.index].answer()
                try expectProblem(answer, .busy)
                #expect(answer.field("Retry-After").flatMap { Int($0) } ?? 0 > 0)
            }
            for index in 0..<Self.placeCount {
                // A stopped chunk resumes; any other is replaced and comes again completely.
                let isStopped = stopped.contains { $0.index == index }
                let put = upload.put(index, from: isStopped ? Self.sentByteCount : 0)
                #expect(try await insist(put, on: server).status == 201)
            }
            for index in 5..<8 {
                #expect(try await server.ask(upload.put(index)).status == 201)
            }
            let file = try await server.ask(upload.finalize()).decoded(FinalizeResponse.self)
            #expect(file.fileHashSha256 == upload.digest)
        }
    }

    /// A whole file that is stopped leaves nothing to resume.
    @Test func `slow uploads of whole files are not stopped`() async throws {
        try await withFewPlaces { server, upload in
            let post = HTTPRequestBytes("POST", "/files", [("Content-Length", "1000")])
            let whole = try await server.connect()
            try await whole.send(post.head + Array(repeating: 1, count: 999))
            var writers: [ClientConnection] = []
            for index in 1..<Self.placeCount {
                writers.append(try await server.hold(index, of: upload))
            }
            for index in 4..<8 {
                #expect(try await insist(upload.put(index), on: server).status == 201)
            }
            try await whole.send([1])
            #expect(try await whole.answer().status == 201)
            for writer in writers { try await writer.close() }
        }
    }
}
