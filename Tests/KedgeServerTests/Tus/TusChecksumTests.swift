import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// `Upload-Checksum` as a header and as a trailer.
@Suite(.timeLimit(.minutes(1))) struct TusChecksumTests {
    private static func field(_ algorithm: ChecksumAlgorithm, of bytes: [UInt8]) -> String {
        var hasher = ChecksumHasher(algorithm)
        hasher.update(bytes)
        return "\(algorithm.rawValue) \(Base64.encode(hasher.checksum()))"
    }

    @Test(arguments: ChecksumAlgorithm.allCases, [false, true])
    func `an append counts with the right checksum and not with a wrong one`(
        algorithm: ChecksumAlgorithm, isTrailer: Bool
    ) async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(20_000, seed: 31)
            let path = try await server.tusUpload(byteCount: content.count)
            func send(_ bytes: [UInt8], at offset: Int, _ checksum: String) async throws
                -> HTTPAnswer
            {
                let patch = HTTPRequestBytes.tusPatch(path, at: offset, bytes)
                return try await server.ask(
                    isTrailer
                        ? patch.withTrailer("Upload-Checksum", checksum)
                        : patch.with([("Upload-Checksum", checksum)]))
            }
            let first = Array(content[..<15_000])
            let wrong = try await send(first, at: 0, Self.field(algorithm, of: content))
            try expectProblem(wrong, .uploadChecksumMismatch)
            #expect(wrong.status == 460)
            try await expectOffset(0, of: path, on: server)
            let right = try await send(first, at: 0, Self.field(algorithm, of: first))
            #expect(right.status == 204)
            try await expectOffset(15_000, of: path, on: server)
            let rest = Array(content[15_000...])
            _ = try await send(rest, at: 15_000, Self.field(algorithm, of: rest))
            #expect(try await server.get(path).body == content)
        }
    }

    @Test(arguments: [
        "", "sha1", "sha1 ", "sha1 !", "sha1 YQ==", "SHA1 2jmj7l5rSw0yVb/vlWAYkK/YBwk=",
        "sha224 YQ==", "md4 1B2M2Y8AsgTpgAmY7PhCfg==", "sha1  2jmj7l5rSw0yVb/vlWAYkK/YBwk=",
        "sha1 2jmj7l5rSw0yVb/vlWAYkK/YBwk= x", "sha1 2jmj7l5rSw0yVb/vlWAYkK/YBwk",
    ])
    func `a malformed checksum is refused, and no byte counts`(value: String) async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            for request in [
                HTTPRequestBytes.tusPatch(path, at: 0, [1]).with([("Upload-Checksum", value)]),
                HTTPRequestBytes.tusPatch(path, at: 0, [1])
                    .withTrailer("Upload-Checksum", value),
            ] {
                try expectProblem(try await server.ask(request), .badRequest)
                try await expectOffset(0, of: path, on: server)
            }
        }
    }

    @Test func `an append without its announced checksum trailer is refused`() async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            let request = HTTPRequestBytes.tusPatch(path, at: 0, [1])
            try expectProblem(
                try await server.ask(
                    request.withTrailer("X-Other", "1")
                        .with([("Trailer", "X-Other, upload-checksum")])), .badRequest)
            try await expectOffset(0, of: path, on: server)
        }
    }

    @Test func `an append with a checksum in header and trailer is refused`() async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            let checksum = Self.field(.sha1, of: [1])
            let request = HTTPRequestBytes.tusPatch(path, at: 0, [1])
                .withTrailer("Upload-Checksum", checksum)
            try expectProblem(
                try await server.ask(request.with([("Upload-Checksum", checksum)])), .badRequest)
        }
    }

    @Test func `an interrupted append with a checksum does not count`()
        async throws
    {
        try await SharedServer.use { server in
            let content = sampleBytes(5000, seed: 32)
            let path = try await server.tusUpload(byteCount: content.count)
            let request = HTTPRequestBytes.tusPatch(path, at: 0, content)
                .with([("Upload-Checksum", Self.field(.sha1, of: content))])
            let connection = try await server.connect()
            try await connection.send(request.head + content[..<2000])
            try await connection.finishSending()
            // The server may answer or only close; the offset below decides.
            _ = try? await connection.answer()
            try await expectOffset(0, of: path, on: server)
        }
    }

    @Test func `a creation may have a checksum, and a wrong one leaves no upload`() async throws {
        let fixture = try await ServerEnvironment()
        let open = try await fixture.withServer { server in
            let fields = [
                ("Upload-Length", "3"), ("Content-Type", "application/offset+octet-stream"),
            ]
            func create(_ checksum: String) async throws -> HTTPAnswer {
                try await server.ask(
                    .tus(
                        "POST", "/tus/", fields + [("Upload-Checksum", checksum)],
                        body: [1, 2, 3]))
            }
            let right = try await create(Self.field(.sha512, of: [1, 2, 3]))
            #expect(right.status == 201)
            let path = try #require(right.tusPath)
            #expect(try await server.get(path).body == [1, 2, 3])
            let wrong = try await create(Self.field(.sha512, of: [1, 2]))
            try expectProblem(wrong, .uploadChecksumMismatch)
            #expect(wrong.field("Location") == nil)
            return try await server.tusUpload(byteCount: 1)
        }
        #expect(try await fixture.openSessions().map { "/tus/\($0)" } == [open])
    }
}
