import KedgeHash
import KedgeModel
import KedgeServer
import KedgeTesting
import Logging
import Testing

/// `GET` and `HEAD /files/{fileId}`: the whole file and its head.
@Suite(.timeLimit(.minutes(1))) struct DownloadTests {
    @Test(arguments: [0, 1, 2500, 2 << 20])
    func `a download has the whole file and a head that describes it`(byteCount: Int) async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(byteCount)
            let file = try await server.upload(
                content, chunkSize: 500_000, mimeType: "text/html")
            let answer = try await server.get("/files/\(file.remoteFileId)")
            #expect(answer.status == 200)
            #expect(answer.body == content)
            #expect(answer.field("Content-Length") == String(byteCount))
            #expect(answer.field("ETag") == file.etag)
            #expect(answer.field("Accept-Ranges") == "bytes")
            #expect(answer.field("Content-Range") == nil)
            #expect(
                answer.field("Repr-Digest")
                    == DigestHeader.rfc9530(SHA256Hasher.digest(of: content)))
        }
    }

    @Test func `the entity tag is strong and comes from the digest`() async throws {
        try await SharedServer.use { server in
            let file = try await server.upload(sampleBytes(100))
            #expect(file.etag.hasPrefix("\"") && file.etag.hasSuffix("\""))
            #expect(file.etag.contains(file.fileHashSha256.hex))
        }
    }

    /// R130: browsers must not run uploaded content.
    @Test func `a download has headers that keep browsers from running it`() async throws {
        try await SharedServer.use { server in
            let file = try await server.upload([1], mimeType: "text/html")
            let answer = try await server.get("/files/\(file.remoteFileId)")
            #expect(answer.field("X-Content-Type-Options") == "nosniff")
            #expect(answer.field("Content-Disposition")?.hasPrefix("attachment;") == true)
            let policy = answer.field("Content-Security-Policy") ?? ""
            #expect(policy.contains("sandbox") && policy.contains("default-src 'none'"))
            #expect(answer.field("Cache-Control")?.contains("no-transform") == true)
        }
    }

    @Test func `a file without a declared type is served as octet-stream`() async throws {
        try await SharedServer.use { server in
            let file = try await server.upload([1])
            let answer = try await server.get("/files/\(file.remoteFileId)")
            #expect(answer.field("Content-Type") == "application/octet-stream")
        }
    }

    @Test(arguments: [
        "plain.txt", "ship's log, 3rd.txt", "\"quoted\"; filename=x", "日誌 ☂.bin", "100%41.txt",
        "a=b;c", "x'y'z",
    ])
    func `a file name survives Content-Disposition`(name: String) async throws {
        try await SharedServer.use { server in
            let file = try await server.upload([1], fileName: name)
            let value = try await server.get("/files/\(file.remoteFileId)")
                .field("Content-Disposition")
            #expect(ContentDisposition.fileName(in: try #require(value)) == name)
        }
    }

    @Test(arguments: [0, 2500])
    func `HEAD has the fields of GET, without the bytes`(byteCount: Int) async throws {
        try await SharedServer.use { server in
            let file = try await server.upload(sampleBytes(byteCount), mimeType: "text/plain")
            let path = "/files/\(file.remoteFileId)"
            let connection = try await server.connect()
            let head = try await connection.ask(HTTPRequestBytes("HEAD", path))
            // The client would read a body after the head as the beginning of this answer.
            let get = try await connection.ask(HTTPRequestBytes("GET", path))
            #expect(head.status == get.status)
            let passing: Set = ["date", "x-request-id"]
            func lasting(_ answer: HTTPAnswer) -> [String: String] {
                Dictionary(
                    answer.fields.map { ($0.name.lowercased(), $0.value) },
                    uniquingKeysWith: { $0 + "," + $1 }
                ).filter { !passing.contains($0.key) }
            }
            #expect(lasting(head) == lasting(get))
            #expect(get.body.count == byteCount)
        }
    }

    @Test func `clients that leave a download do no harm`() async throws {
        try await withServer { server in
            let content = [UInt8](repeating: 7, count: 8 << 20)
            let file = try await server.ask(HTTPRequestBytes("POST", "/files", body: content))
                .decoded(FinalizeResponse.self)
            for _ in 0..<10 {
                let reader = try await server.connect()
                try await reader.send(HTTPRequestBytes("GET", "/files/\(file.remoteFileId)"))
                try await reader.readSome()
                try await reader.close(resetting: true)
            }
            let answer = try await server.get("/files/\(file.remoteFileId)")
            #expect(answer.body == content)
        }
    }

    /// The client can detect it: the answer ends before the announced length.
    @Test func `a disk that fails during a download truncates the answer`() async throws {
        try await withServer { server in
            let content = sampleBytes(2 << 20)
            let file = try await server.ask(HTTPRequestBytes("POST", "/files", body: content))
                .decoded(FinalizeResponse.self)
            server.fixture.disk.fail(after: 3, of: .read)
            let answer = try await server.get("/files/\(file.remoteFileId)")
            #expect(!answer.isWhole)
            #expect(answer.body == Array(content.prefix(answer.body.count)))
            let again = try await server.get("/files/\(file.remoteFileId)")
            #expect(again.body == content)
            #expect(server.fixture.log.lines.contains { $0.level == .error })
        }
    }
}
