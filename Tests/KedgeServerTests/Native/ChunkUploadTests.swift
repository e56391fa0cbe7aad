import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// `PUT /uploads/sessions/{sessionId}/chunks/{index}`: chunks that are accepted.
@Suite(.timeLimit(.minutes(1))) struct ChunkUploadTests {
    /// R55, R59, R64.
    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `chunks in any order make the file`(seed: UInt64) async throws {
        try await SharedServer.use { server in
            var generator = SplitMix64(seed: seed)
            let content = sampleBytes(Int.random(in: 1...9000, using: &generator), seed: seed)
            let upload = try await server.begin(content)
            var sent: Set<Int> = []
            for index in (0..<upload.chunkCount).shuffled(using: &generator) {
                let answer = try await server.ask(upload.put(index))
                sent.insert(index)
                #expect(answer.status == 201)
                let receipt = try answer.decoded(ChunkReceipt.self)
                #expect(receipt.index == index)
                #expect(receipt.sha256 == SHA256Hasher.digest(of: upload.chunk(index)))
                #expect(receipt.receivedChunkCount == sent.count)
                #expect(receipt.totalChunks == upload.chunkCount)
            }
            let file = try await server.ask(upload.finalize()).decoded(FinalizeResponse.self)
            #expect(file.fileHashSha256 == upload.digest)
            let answer = try await server.get("/files/\(file.remoteFileId)")
            #expect(answer.body == content)
        }
    }

    @Test func `chunks sent at the same time make the file`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(200_000), chunkSize: 20_000)
            try await withThrowingTaskGroup(of: Int.self) { group in
                for index in 0..<upload.chunkCount {
                    group.addTask { try await server.ask(upload.put(index)).status }
                }
                for try await status in group { #expect(status == 201) }
            }
            let file = try await server.ask(upload.finalize()).decoded(FinalizeResponse.self)
            #expect(file.fileHashSha256 == upload.digest)
        }
    }

    /// R122.
    @Test func `a chunk that is stored already is acknowledged and changes nothing`()
        async throws
    {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            let first = try await server.ask(upload.put(2))
            #expect(first.status == 201)
            let second = try await expectUnchanged(upload, on: server) {
                try await server.ask(upload.put(2))
            }
            #expect(second.status == 200)
            #expect(
                try second.decoded(ChunkReceipt.self) == first.decoded(ChunkReceipt.self))
        }
    }

    @Test func `a chunk of a completed session is acknowledged again`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(500))
            _ = try await server.ask(upload.put(0))
            _ = try await server.ask(upload.finalize())
            #expect(try await server.ask(upload.put(0)).status == 200)
        }
    }

    /// R57: field name and digits in upper and lower case.
    @Test(arguments: ["X-Chunk-Hash", "x-chunk-hash", "X-CHUNK-HASH"])
    func `the chunk hash is accepted in upper and lower case`(name: String) async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(500))
            let digits = upload.digest.hex.uppercased()
            let answer = try await server.ask(
                upload.put(0).with([("X-Chunk-Hash", nil), (name, "SHA256=\(digits)")]))
            #expect(answer.status == 201)
            #expect(try answer.decoded(ChunkReceipt.self).sha256 == upload.digest)
        }
    }

    /// The field has RFC 9530 digests, one of them of an algorithm that the server does not know.
    @Test func `Content-Digest can replace X-Chunk-Hash`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(500))
            let value = "md5=:aaaa:, \(DigestHeader.rfc9530(upload.digest))"
            let answer = try await server.ask(
                upload.put(0).with([("X-Chunk-Hash", nil), ("Content-Digest", value)]))
            #expect(answer.status == 201)
        }
    }

    @Test func `a chunk without Content-Length is accepted`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(500))
            let pieces = [Array(upload.content[..<1]), Array(upload.content[1...])]
            #expect(try await server.ask(upload.put(0).chunked(pieces)).status == 201)
        }
    }

    /// R58: one chunk with far more bytes than the buffers hold.
    @Test func `a large chunk is stored completely`() async throws {
        try await withServer { server in
            let content = sampleBytes(6 << 20)
            let upload = try await server.begin(content, chunkSize: 5 << 20)
            #expect(try await server.ask(upload.put(1)).status == 201)
            #expect(try await server.ask(upload.put(0)).status == 201)
            let file = try await server.ask(upload.finalize()).decoded(FinalizeResponse.self)
            #expect(file.fileHashSha256 == upload.digest)
        }
    }
}
