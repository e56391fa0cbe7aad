import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// `POST /files`, whose body is the file.
@Suite(.timeLimit(.minutes(1))) struct WholeFileUploadTests {
    private static func post(
        _ body: [UInt8], _ fields: [(String, String)] = []
    ) -> HTTPRequestBytes { HTTPRequestBytes("POST", "/files", fields, body: body) }

    @Test(arguments: [0, 1, 5000, 3 << 20])
    func `the body of an upload becomes a file`(byteCount: Int) async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(byteCount)
            let answer = try await server.ask(
                Self.post(content, [("Content-Type", "text/plain")]))
            #expect(answer.status == 201)
            let file = try answer.decoded(FinalizeResponse.self)
            #expect(file.size == Int64(byteCount))
            #expect(file.fileHashSha256 == SHA256Hasher.digest(of: content))
            #expect(answer.field("ETag") == file.etag)
            #expect(answer.field("Location") == "/files/\(file.remoteFileId)")
            let download = try await server.get("/files/\(file.remoteFileId)")
            #expect(download.body == content)
            #expect(download.field("Content-Type") == "text/plain")
        }
    }

    @Test(arguments: [[0], [1], [5000], [1, 4999], [2048, 0, 2952]])
    func `a whole file may come in HTTP chunks`(sizes: [Int]) async throws {
        try await SharedServer.use { server in
            var rest = sampleBytes(sizes.reduce(0, +))[...]
            let content = Array(rest)
            let pieces = sizes.map { size in
                defer { rest = rest.dropFirst(size) }
                return Array(rest.prefix(size))
            }
            let answer = try await server.ask(Self.post([]).chunked(pieces))
            #expect(answer.status == 201)
            let file = try answer.decoded(FinalizeResponse.self)
            #expect(file.fileHashSha256 == SHA256Hasher.digest(of: content))
        }
    }

    @Test(arguments: ["Content-Digest", "Repr-Digest"])
    func `a SHA-256 digest is checked against the body`(field: String) async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(5000)
            let right = DigestHeader.rfc9530(SHA256Hasher.digest(of: content))
            let wrong = DigestHeader.rfc9530(SHA256Hasher.digest(of: []))
            #expect(try await server.ask(Self.post(content, [(field, right)])).status == 201)
            let answer = try await server.ask(Self.post(content, [(field, wrong)]))
            let problem = try expectProblem(answer, .integrityMismatch)
            #expect(problem.actualSha256 == SHA256Hasher.digest(of: content))
        }
    }

    /// `printf abc | sha512sum`, the example of FIPS 180-4.
    @Test func `a SHA-512 digest is checked against the body, too`() async throws {
        try await withServer { server in
            let digest = [
                (
                    "Content-Digest",
                    "sha-512=:3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==:"
                )
            ]
            let wrong = try await server.ask(Self.post(Array("abd".utf8), digest))
            try expectProblem(wrong, .chunkHashMismatch)
            #expect(try await server.get("/files").decoded(FileList.self).files.isEmpty)
            #expect(
                try await server.ask(Self.post(Array("abc".utf8), digest)).status == 201)
        }
    }

    @Test(arguments: ["", "x", "sha-512=:aaaa:", "sha-256=:!:", "sha-256=::", "sha-256=:aaaa:"])
    func `a malformed digest is refused`(value: String) async throws {
        try await SharedServer.use { server in
            let answer = try await server.ask(Self.post([1], [("Content-Digest", value)]))
            try expectProblem(answer, .badRequest)
        }
    }

    @Test func `digests that disagree are refused`() async throws {
        try await SharedServer.use { server in
            let digests = [[1], [2]].map { DigestHeader.rfc9530(SHA256Hasher.digest(of: $0)) }
            let answer = try await server.ask(
                Self.post([1], [("Content-Digest", digests[0]), ("Repr-Digest", digests[1])]))
            try expectProblem(answer, .badRequest)
        }
    }

    @Test(arguments: [
        ("attachment; filename=\"a b.txt\"", "a b.txt"), ("attachment; filename=a.txt", "a.txt"),
        ("attachment; filename=\"a\\\"b;c.txt\"", "a\"b;c.txt"),
        ("attachment; filename=\"x\"; filename*=UTF-8''na%C3%AFve%20file", "naïve file"),
        ("attachment; filename*=utf-8'en'%E2%98%82; filename=\"x\"", "☂"),
        ("form-data; name=\"f\"; filename=\"y\"", "y"),
        // No name, or one that needs a change.
        ("inline", "file"), ("attachment; filename=", "file"),
        ("attachment; filename=\"\"", "file"), ("attachment; filename=\"..\"", "file"),
        ("attachment; filename=\"../../etc/passwd\"", "passwd"),
        ("attachment; filename=\"a\\\\b\"", "a_b"),
        ("attachment; filename*=UTF-8''..%2Fx", "x"),
        ("attachment; filename*=UTF-8''a%00b", "a_b"),
        ("attachment; filename*=UTF-8''a%0D%0Ab", "a__b"),
        ("attachment; filename*=UTF-8''%E2%80%AEx", "_x"),
        (
            "attachment; filename=\"\(String(repeating: "x", count: 256))\"",
            String(repeating: "x", count: 255)
        ),
    ])
    func `the file name comes from Content-Disposition`(value: String, name: String) async throws {
        try await SharedServer.use { server in
            let file = try await server.ask(Self.post([1], [("Content-Disposition", value)]))
                .decoded(FinalizeResponse.self)
            let meta = try await server.get("/files/\(file.remoteFileId)/meta")
            #expect(try meta.decoded(FileMeta.self).fileName == name)
        }
    }

    @Test(arguments: [
        "attachment; filename*=UTF-8''%FF",
        "attachment; filename*=iso-8859-1''a", "attachment; filename*=UTF-8''%zz",
        "attachment; filename*=UTF-8''%4", "attachment; filename*=UTF-8''%",
        "attachment; filename*=UTF-8''é", "attachment; filename=\"x\"; filename*=UTF-8''%FF",
        "attachment; filename*=a",
    ])
    func `a file name that cannot be decoded is refused`(value: String) async throws {
        try await SharedServer.use { server in
            let answer = try await server.ask(
                Self.post([1], [("Content-Disposition", value)]))
            try expectProblem(answer, .badRequest)
        }
    }

    /// The bytes of a request whose file name is no text, as clients with other encodings send it.
    private static func post(fileName parameters: [UInt8]) -> [UInt8] {
        Array("POST /files HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n".utf8)
            + Array("Content-Disposition: attachment; ".utf8) + parameters
            + Array("\r\n\r\nx".utf8)
    }

    struct RawName: Sendable {
        var before: String
        var bytes: [UInt8]
        var after = ""
        var parameter: [UInt8] { Array(before.utf8) + bytes + Array(after.utf8) }
    }

    @Test(arguments: [
        RawName(before: "filename=\"", bytes: [0xFF], after: "\""),
        RawName(before: "filename=\"caf", bytes: [0xE9], after: ".txt\""),
        RawName(before: "filename=", bytes: [0xE2, 0x82]),
        RawName(before: "filename*=UTF-8''", bytes: [0xE9]),
        // The replacement character of a decoder is no name either.
        RawName(before: "filename=\"a", bytes: [0xEF, 0xBF, 0xBD], after: "b\""),
    ])
    func `a file name that is not UTF-8 is refused`(
        name: RawName
    ) async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send(Self.post(fileName: name.parameter))
            try expectProblem(try await connection.answer(), .badRequest)
        }
    }

    /// RFC 6266 section 4.3: the plain form is for clients that do not know the extended one.
    @Test(arguments: [true, false])
    func `an extended file name is accepted beside a plain one that is not UTF-8`(
        isPlainFirst: Bool
    ) async throws {
        try await SharedServer.use { server in
            let plain = Array("filename=\"caf".utf8) + [0xE9] + Array("\"".utf8)
            let full = Array("filename*=UTF-8''caf%C3%A9".utf8)
            let separator = Array("; ".utf8)
            let connection = try await server.connect()
            try await connection.send(
                Self.post(
                    fileName: isPlainFirst ? plain + separator + full : full + separator + plain))
            let file = try await connection.answer().decoded(FinalizeResponse.self)
            let meta = try await server.get("/files/\(file.remoteFileId)/meta")
            #expect(try meta.decoded(FileMeta.self).fileName == "café")
        }
    }

    @Test(arguments: ["é", "日本", "a b\u{301}"])
    func `a plain file name in UTF-8 is kept unchanged`(name: String) async throws {
        try await SharedServer.use { server in
            let file = try await server.ask(
                Self.post([1], [("Content-Disposition", "attachment; filename=\"\(name)\"")])
            ).decoded(FinalizeResponse.self)
            let meta = try await server.get("/files/\(file.remoteFileId)/meta")
            #expect(try meta.decoded(FileMeta.self).fileName == name)
        }
    }

    @Test func `a malformed media type is refused`() async throws {
        try await SharedServer.use { server in
            let answer = try await server.ask(Self.post([1], [("Content-Type", "text")]))
            try expectProblem(answer, .badRequest)
        }
    }

    @Test func `a file that is too large is refused, with or without Content-Length`() async throws
    {
        try await withServer { configuration in
            configuration.engine.maxFileSize = 1000
        } _: { server in
            let content = sampleBytes(1001)
            #expect(try await server.ask(Self.post(Array(content[..<1000]))).status == 201)
            let announced = try await server.ask(Self.post(content))
            #expect(try expectProblem(announced, .fileTooLarge).maxBytes == 1000)
            let open = try await server.ask(Self.post([]).chunked([content]))
            try expectProblem(open, .fileTooLarge)
        }
    }

    /// Nothing stays, because there is no session to resume.
    @Test func `an upload of a whole file that breaks off leaves no file`() async throws {
        try await withServer { server in
            let connection = try await server.connect()
            let request = Self.post(sampleBytes(5000))
            try await connection.send(request.head + (request.body ?? []).prefix(4000))
            try await connection.finishSending()
            try expectProblem(try await connection.answer(), .lengthMismatch)
            let list = try await server.get("/files").decoded(FileList.self)
            #expect(list.files.isEmpty)
        }
    }
}
