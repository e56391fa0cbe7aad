import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// `PUT /uploads/sessions/{sessionId}/chunks/{index}`: requests that are refused before their body
/// is read.
@Suite(.timeLimit(.minutes(1))) struct ChunkRefusalTests {
    /// Sends a changed request for chunk 1 and expects the code; the session must stay as it is.
    private static func refusing(
        _ code: ErrorCode, _ change: @Sendable (Upload, inout HTTPRequestBytes) -> Void
    ) async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            _ = try await server.ask(upload.put(0))
            var put = upload.put(1)
            change(upload, &put)
            let answer = try await expectUnchanged(upload, on: server) {
                try await server.ask(put)
            }
            try expectProblem(answer, code)
            #expect(try await server.ask(upload.put(1)).status == 201)
        }
    }

    @Test(arguments: HostileText.numbers + ["3", "1048575", "1048576"])
    func `a chunk index outside the file is refused`(index: String) async throws {
        try await Self.refusing(.chunkOutOfBounds) { upload, put in
            put.target = "\(upload.path)/chunks/\(index)"
        }
    }

    @Test func `a chunk address without an index is not found`() async throws {
        try await Self.refusing(.routeNotFound) { upload, put in
            put.target = "\(upload.path)/chunks/"
        }
    }

    @Test func `a chunk of an empty file is refused`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin([])
            let put = Upload(content: [1], chunkSize: 1000, id: upload.id).put(0)
            try expectProblem(try await server.ask(put), .chunkOutOfBounds)
        }
    }

    /// R56.
    @Test(arguments: [
        nil, "", "bytes", "1000-1999/2500", "bytes 1000-1999", "bytes 1000-1999/",
        "bytes 1000-1999/*", "bytes */2500", "bytes 0-999/2500", "bytes 999-1500/2500",
        "bytes 1000-2000/2500", "bytes 999-1999/2500", "bytes 2000-2499/2500",
        "bytes 1000-1999/2501", "bytes 1000-1999/2499", "bytes 1999-1000/2500",
        "items 1000-1999/2500", "bytes=1000-1999/2500", "bytes 1000 - 1999/2500",
        "bytes 1000-1999/2500, bytes 0-0/1", "bytes 1000-1999/2500/2500", "bytes 1-2-3/2500",
        "bytes -1-1999/2500", "bytes +1000-1999/2500", "bytes 1e3-1999/2500",
        "bytes 0-2147483648/2500", "bytes 0-9007199254740992/9007199254740993",
        "bytes 0-9223372036854775807/2500", "bytes 0-9223372036854775807/9223372036854775807",
        "bytes 9223372036854775807-9223372036854775807/9223372036854775807",
        "bytes 0-9223372036854775808/2500", "bytes 0-18446744073709551616/2500",
        "bytes 1000-1999/18446744073709551616", "bytes ١٠٠٠-١٩٩٩/2500",
        "bytes １０００-1999/2500",
    ])
    func `a Content-Range that is not the chunk's is refused`(range: String?) async throws {
        try await Self.refusing(.rangeMismatch) { _, put in
            put = put.with([("Content-Range", range)])
        }
    }

    /// R14.
    @Test(arguments: [
        nil, "", "sha256", "sha256=", "sha-256=\(digest)", "md5=\(digest)", digest,
        "sha256=\(digest)0", "sha256=\(digest.dropLast())", "sha256= \(digest)",
        "sha256=\(String(repeating: "g", count: 64))",
        "sha256=\(String(repeating: "١", count: 32))",
        "sha256=q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k=",
    ])
    func `a missing or malformed chunk hash is refused`(hash: String?) async throws {
        try await Self.refusing(.chunkHashRequired) { _, put in
            put = put.with([("X-Chunk-Hash", hash)])
        }
    }

    @Test(arguments: ["", "sha-512=:aaaa:", "sha-256=:!!:", "sha-256=:aaaa:", "sha-256=aaaa"])
    func `a Content-Digest without a valid SHA-256 is refused`(value: String) async throws {
        try await Self.refusing(.chunkHashRequired) { _, put in
            put = put.with([("X-Chunk-Hash", nil), ("Content-Digest", value)])
        }
    }

    /// Such a digest covers the body alone, not the chunk.
    @Test func `the rest of a chunk is refused with a digest of the rest alone`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            try await server.breakOff(0, of: upload, after: 600)
            let rest = Array(upload.chunk(0)[600...])
            let digest = DigestHeader.rfc9530(SHA256Hasher.digest(of: rest))
            let put = upload.put(0, from: 600).with([
                ("X-Chunk-Hash", nil), ("Content-Digest", digest),
            ])
            let answer = try await expectUnchanged(upload, on: server) {
                try await server.ask(put)
            }
            try expectProblem(answer, .chunkHashRequired)
        }
    }

    @Test func `the rest of a chunk is refused with the hash of another chunk`() async throws {
        try await SharedServer.use { server in
            let upload = try await server.begin(sampleBytes(2500))
            try await server.breakOff(0, of: upload, after: 600)
            let put = upload.put(0, from: 600).with([("X-Chunk-Hash", "sha256=\(Self.digest)")])
            let answer = try await expectUnchanged(upload, on: server) {
                try await server.ask(put)
            }
            #expect(try expectProblem(answer, .offsetMismatch).expectedOffset == 0)
        }
    }

    /// R20: the head shows the mismatch, so the server reads nothing of the body.
    @Test(arguments: ["0", "999", "1001", "9223372036854775807"])
    func `a Content-Length that is not the range's is refused`(length: String) async throws {
        try await Self.refusing(.lengthMismatch) { _, put in
            put = put.with([("Content-Length", length)])
        }
    }

    /// R123.
    @Test func `a chunk with other bytes than the stored one is a conflict`() async throws {
        try await Self.refusing(.chunkConflict) { upload, put in
            put = upload.put(0).with([("X-Chunk-Hash", "sha256=\(Self.digest)")])
        }
    }

    @Test func `a body that starts after the stored bytes is refused`() async throws {
        try await Self.refusing(.offsetMismatch) { upload, put in
            put = upload.put(1, from: 1)
        }
    }

    private static let digest = String(repeating: "ab", count: 32)
}
