import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Digests with resumable uploads (RFC 9530).
@Suite(.timeLimit(.minutes(1))) struct ResumableUploadDigestTests {
    private static let client = ResumableClient(interopVersion: .interop9)
    private static let content = sampleBytes(900, seed: 23)
    private static let sha256 = DigestHeader.rfc9530(SHA256Hasher.digest(of: content))
    /// `printf abc | sha512sum`, the example of FIPS 180-4.
    private static let sha512OfABC =
        "sha-512=:3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==:"

    @Test func `bodies with the right Content-Digest are accepted`() async throws {
        try await SharedServer.use { server in
            let location = try await server.beginResumable(
                Self.client, Self.content, [("Content-Digest", Self.sha256)])
            let append = Self.client.append(
                Array("abc".utf8), to: location, at: 900, completes: true,
                [("Content-Digest", "unknown=:AA==:, \(Self.sha512OfABC)")])
            let answer = try await server.askResumable(append)
            #expect(try await server.fileBytes(answer) == Self.content + Array("abc".utf8))
        }
    }

    @Test(arguments: [sha256, sha512OfABC])
    func `a body with a wrong Content-Digest does not count`(digest: String) async throws {
        try await SharedServer.use { server in
            let location = try await server.beginResumable(Self.client, [1])
            let append = Self.client.append(
                Array("abd".utf8), to: location, at: 1, completes: true,
                [("Content-Digest", digest)])
            try expectProblem(try await server.askResumable(append), .chunkHashMismatch)
            let state = try await server.ask(Self.client.head(location))
            #expect(state.field("Upload-Offset") == "1")
            #expect(state.field("Upload-Complete") == "?0")
        }
    }

    @Test func `a body with a wrong Content-Digest does not fix the length`() async throws {
        try await SharedServer.use { server in
            let wrong = [("Content-Digest", Self.sha512OfABC)]
            let connection = try await server.connect()
            try await connection.send(Self.client.create([1, 2], completes: true, wrong))
            let location = try #require(try await connection.answer().field("Location"))
            try expectProblem(try await connection.finalAnswer(), .chunkHashMismatch)
            let again = try await server.askResumable(
                Self.client.append([1, 2, 3], to: location, at: 0, completes: true, wrong))
            try expectProblem(again, .chunkHashMismatch)
            let state = try await server.ask(Self.client.head(location))
            #expect(state.field("Upload-Length") == nil)
            let answer = try await server.askResumable(
                Self.client.append(Self.content, to: location, at: 0, completes: true))
            #expect(try await server.fileBytes(answer) == Self.content)
        }
    }

    @Test(arguments: ["md5=:AAAA:", "sha-256=:AAAA:", "sha-256", "nonsense?"])
    func `a digest that cannot be checked is refused`(digest: String) async throws {
        try await SharedServer.use { server in
            for field in ["Content-Digest", "Repr-Digest"] {
                let answer = try await server.askResumable(
                    Self.client.create([1], completes: false, [(field, digest)]))
                try expectProblem(answer, .badRequest)
            }
        }
    }

    @Test func `an upload with the right Repr-Digest makes the file`() async throws {
        try await SharedServer.use { server in
            let answer = try await server.askResumable(
                Self.client.create(
                    Self.content, completes: true, [("Repr-Digest", Self.sha256)]))
            #expect(answer.status == 201)
            #expect(answer.field("Repr-Digest") == Self.sha256)
        }
    }

    /// All bytes have arrived, so the answer is final, and resuming cannot help.
    @Test func `a file that differs from its declared Repr-Digest is refused, and the upload ends`()
        async throws
    {
        try await SharedServer.use { server in
            let location = try await server.beginResumable(
                Self.client, [1], [("Repr-Digest", Self.sha256)])
            let answer = try await server.askResumable(
                Self.client.append([2], to: location, at: 1, completes: true))
            try expectProblem(answer, .integrityMismatch)
            #expect(answer.field("Upload-Complete") == "?1")
            #expect(try await server.ask(Self.client.head(location)).status == 404)
        }
    }

    /// The bytes are as they arrived; the digest of a later request may be wrong.
    @Test func `completing an upload with a wrong Repr-Digest is refused and can be repeated`()
        async throws
    {
        try await SharedServer.use { server in
            let other = DigestHeader.rfc9530(SHA256Hasher.digest(of: [7]))
            let location = try await server.beginResumable(Self.client)
            let answer = try await server.askResumable(
                Self.client.append(
                    Self.content, to: location, at: 0, completes: true, [("Repr-Digest", other)]))
            try expectProblem(answer, .integrityMismatch)
            #expect(answer.field("Upload-Complete") == "?0")
            let state = try await server.ask(Self.client.head(location))
            #expect(state.field("Upload-Offset") == "\(Self.content.count)")
            #expect(state.field("Upload-Complete") == "?0")
            let end = Self.client.append(
                [], to: location, at: Self.content.count, completes: true)
            let file = try await server.askResumable(end.with([("Repr-Digest", Self.sha256)]))
            #expect(try await server.fileBytes(file) == Self.content)
            // The server also compares the digest with a complete upload.
            try expectProblem(
                try await server.askResumable(end.with([("Repr-Digest", other)])),
                .integrityMismatch)
            let again = try await server.askResumable(end.with([("Repr-Digest", Self.sha256)]))
            #expect(again.body == file.body)
        }
    }

    @Test func `the Repr-Digest of the creation counts, whatever a later request declares`()
        async throws
    {
        try await SharedServer.use { server in
            let other = DigestHeader.rfc9530(SHA256Hasher.digest(of: [7]))
            let location = try await server.beginResumable(
                Self.client, [], [("Repr-Digest", other)])
            let answer = try await server.askResumable(
                Self.client.append(
                    Self.content, to: location, at: 0, completes: true,
                    [("Repr-Digest", Self.sha256)]))
            try expectProblem(answer, .integrityMismatch)
            #expect(answer.field("Upload-Complete") == "?1")
            #expect(try await server.ask(Self.client.head(location)).status == 404)
        }
    }
}
