import KedgeModel
import KedgeTesting
import Testing

/// `PUT /uploads/sessions/{sessionId}/chunks/{index}`: bodies with other bytes than announced, and
/// bodies that break off.
@Suite(.timeLimit(.minutes(1))) struct ChunkBodyTests {
    /// R15, R16: the other chunks stay, and the client can send this one again at once.
    @Test func `a chunk with a wrong hash does not count`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            _ = try await server.ask(upload.put(0))
            for position in [0, 999] {
                var put = upload.put(1)
                put.body?[position] ^= 0x10
                let answer = try await expectUnchanged(upload, on: server) {
                    try await server.ask(put)
                }
                let problem = try expectProblem(answer, .chunkHashMismatch)
                #expect(problem.actualSha256 != problem.expectedSha256)
            }
            #expect(try await server.ask(upload.put(1)).status == 201)
        }
    }

    /// R132: the server does not ask again for bytes that arrived.
    @Test(arguments: [1, 500, 999])
    func `an interrupted chunk continues where it stopped`(byteCount: Int) async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            try await server.breakOff(0, of: upload, after: byteCount)
            let partial = PartialChunk(index: 0, receivedBytes: Int64(byteCount))
            #expect(try await server.status(of: upload).partialChunks == [partial])
            let answer = try await server.ask(upload.put(0, from: byteCount))
            #expect(answer.status == 201)
            #expect(try answer.decoded(ChunkReceipt.self).receivedBytes == 1000)
            let status = try await server.status(of: upload)
            #expect(status.partialChunks.isEmpty)
            #expect(status.receivedChunks == [0])
        }
    }

    /// The connection is gone, so the client gets no answer.
    @Test func `bytes of a chunk survive a dropped connection`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(400_000), chunkSize: 300_000)
            let writer = try await server.hold(0, of: upload)
            try await writer.send(Array(upload.chunk(0)[..<200_000]))
            try await writer.close()
            var kept: Int64 = 0
            while kept == 0 {
                kept = try await server.status(of: upload).partialChunks.first?.receivedBytes ?? 0
            }
            #expect(kept == 200_000)
            #expect(try await server.ask(upload.put(0, from: 200_000)).status == 201)
            #expect(try await server.ask(upload.put(1)).status == 201)
            let file = try await server.ask(upload.finalize()).decoded(FinalizeResponse.self)
            #expect(file.fileHashSha256 == upload.digest)
        }
    }

    /// A reset may overtake bytes, so the test does not check how many are kept.
    @Test func `a chunk can be sent again after a connection reset`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(400_000), chunkSize: 300_000)
            let writer = try await server.hold(0, of: upload)
            try await writer.send(Array(upload.chunk(0)[..<200_000]))
            try await writer.close(resetting: true)
            for index in [0, 1] {
                #expect(try await server.ask(upload.put(index)).status == 201)
            }
            let file = try await server.ask(upload.finalize()).decoded(FinalizeResponse.self)
            #expect(file.fileHashSha256 == upload.digest)
        }
    }

    @Test func `a chunk may break off again and again`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(1000))
            for end in stride(from: 100, to: 1000, by: 300) {
                let start = Int(
                    try await server.status(of: upload).partialChunks.first?.receivedBytes ?? 0)
                let connection = try await server.connect()
                let put = upload.put(0, from: start)
                try await connection.send(put.head + (put.body ?? []).prefix(end - start))
                try await connection.finishSending()
                try expectProblem(try await connection.answer(), .lengthMismatch)
                let status = try await server.status(of: upload)
                #expect(status.partialChunks.map(\.receivedBytes) == [Int64(end)])
            }
            #expect(try await server.ask(upload.put(0, from: 700)).status == 201)
        }
    }

    /// A client without records sends the whole chunk; the server skips the bytes that it has.
    @Test func `a whole chunk is accepted over its partial`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            try await server.breakOff(0, of: upload, after: 600)
            #expect(try await server.ask(upload.put(0)).status == 201)
        }
    }

    @Test func `a chunk with a damaged partial is discarded and starts over`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(1000))
            var other = upload.content
            other[10] ^= 1
            let damaged = Upload(content: other, chunkSize: 1000, id: upload.id).put(0)
            let honest = upload.put(0).fields
            let connection = try await server.connect()
            var put = damaged
            put.fields = honest
            try await connection.send(put.head + (put.body ?? []).prefix(600))
            try await connection.finishSending()
            _ = try await connection.answer()
            try expectProblem(
                try await server.ask(upload.put(0, from: 600)), .chunkHashMismatch)
            #expect(try await server.status(of: upload).partialChunks.isEmpty)
            #expect(try await server.ask(upload.put(0)).status == 201)
        }
    }

    /// R20: the server checks the length of a body without `Content-Length` at its end.
    @Test func `a body without Content-Length that exceeds its chunk is refused`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            let answer = try await expectUnchanged(upload, on: server) {
                try await server.ask(upload.put(0).chunked([upload.chunk(0), [0]]))
            }
            try expectProblem(answer, .lengthMismatch)
        }
    }

    @Test func `a body without Content-Length that ends early is kept as a partial`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            let pieces = [Array(upload.chunk(0)[..<700])]
            try expectProblem(
                try await server.ask(upload.put(0).chunked(pieces)), .lengthMismatch)
            let status = try await server.status(of: upload)
            #expect(status.partialChunks == [PartialChunk(index: 0, receivedBytes: 700)])
        }
    }

    @Test(arguments: ["zz\r\n\r\n", "ffffffffffffffffff\r\n", "-1\r\n\r\n", "3\r\nabcX"])
    func `malformed HTTP chunks end the body`(text: String) async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            var put = upload.put(0).chunked([])
            put.body = Array(text.utf8)
            let connection = try await server.connect()
            let answer = try await connection.ask(put)
            #expect(answer.status == 400)
            #expect(try await server.status(of: upload).receivedChunks.isEmpty)
        }
    }

    /// The newest writer wins, because the older one may hang on a dead connection.
    @Test func `a second writer of a chunk takes over at once`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(400_000), chunkSize: 300_000)
            let first = try await server.hold(0, of: upload)
            try await first.send(Array(upload.chunk(0)[..<100_000]))
            let clock = ContinuousClock()
            let start = clock.now
            #expect(try await server.ask(upload.put(0)).status == 201)
            #expect(start.duration(to: clock.now) < .seconds(5))
            try expectProblem(try await first.answer(), .writerReplaced)
            #expect(try await server.status(of: upload).receivedChunks == [0])
        }
    }
}
