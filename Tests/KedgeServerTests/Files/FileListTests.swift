import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// `GET /files`, `GET /files/{fileId}/meta` and `GET /files/{fileId}/chunks`.
@Suite(.timeLimit(.minutes(1))) struct FileListTests {
    /// R49, R87.
    @Test func `the metadata of a file is what was uploaded`() async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(2500)
            let file = try await server.upload(
                content, fileName: "ship's log ☂.txt", mimeType: "text/plain; charset=utf-8")
            let answer = try await server.get("/files/\(file.remoteFileId)/meta")
            #expect(answer.status == 200)
            let meta = try answer.decoded(FileMeta.self)
            #expect(meta.remoteFileId == file.remoteFileId)
            #expect(meta.fileName == "ship's log ☂.txt")
            #expect(meta.size == 2500)
            #expect(meta.sha256 == SHA256Hasher.digest(of: content))
            #expect(meta.mimeType == "text/plain; charset=utf-8")
            #expect(meta.etag == file.etag)
            #expect(meta.chunkSize == 1000)
            #expect(meta.createdAt == server.fixture.clock.now())
        }
    }

    /// R93: a downloader can check and repair a single chunk.
    @Test(arguments: [0, 1, 1000, 2500])
    func `the chunks of a file are listed with their digests`(byteCount: Int) async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(byteCount)
            let file = try await server.upload(content)
            let chunks = try await server.get("/files/\(file.remoteFileId)/chunks")
                .decoded(FileChunks.self)
            let upload = Upload(content: content, chunkSize: 1000, id: .random())
            #expect(chunks.chunkSize == 1000)
            #expect(
                chunks.sha256
                    == (0..<upload.chunkCount).map { SHA256Hasher.digest(of: upload.chunk($0)) })
        }
    }

    @Test(arguments: HostileText.identifiers)
    func `an unknown file id is not found`(id: String) async throws {
        try await SharedServer.use { server in
            for path in ["/files/\(id)", "/files/\(id)/meta", "/files/\(id)/chunks"] {
                try expectProblem(try await server.get(path), .fileNotFound)
            }
            let path = "/files/\(id)"
            try expectProblem(
                try await server.ask(HTTPRequestBytes("DELETE", path)), .fileNotFound)
            #expect(try await server.ask(HTTPRequestBytes("HEAD", path)).status == 404)
        }
    }

    @Test func `files are listed a page at a time, newest first, each once`() async throws {
        try await withServer { server in
            var names: [String] = []
            for number in 0..<7 {
                // Some files share a time, so that the order needs more than the time.
                if number.isMultiple(of: 2) { server.fixture.clock.advance(by: .seconds(1)) }
                _ = try await server.upload([UInt8(number)], fileName: "\(number)")
                names.append("\(number)")
            }
            var listed: [FileMeta] = []
            var target = "/files?limit=3"
            var pageSizes: [Int] = []
            while true {
                let page = try await server.get(target).decoded(FileList.self)
                listed += page.files
                pageSizes.append(page.files.count)
                guard let next = page.next else { break }
                target = "/files?limit=3&after=\(next)"
            }
            #expect(pageSizes == [3, 3, 1])
            #expect(listed.map(\.fileName).sorted() == names)
            #expect(listed.map(\.createdAt) == listed.map(\.createdAt).sorted(by: >))
        }
    }

    @Test func `a prefix lists files by the whole components of their paths`() async throws {
        try await withServer { server in
            for path in ["trip/day 1/ü.jpg", "trip/day 1/b.jpg", "trip/day 10/c.jpg", "trip"] {
                _ = try await server.upload([1], fileName: "x", path: path)
            }
            server.fixture.clock.advance(by: .seconds(1))
            let newest = try await server.upload([2], fileName: "x", path: "trip/day 1/b.jpg")
            _ = try await server.upload([1], fileName: "trip")
            var listed: [FileMeta] = []
            var target: String? = "/files?limit=2&prefix=trip/day%201/"
            while let next = target {
                let page = try await server.get(next).decoded(FileList.self)
                listed += page.files
                target = page.next.map { "/files?limit=2&prefix=trip/day%201&after=\($0)" }
            }
            #expect(
                listed.map(\.path) == ["trip/day 1/b.jpg", "trip/day 1/b.jpg", "trip/day 1/ü.jpg"])
            #expect(listed.first?.remoteFileId == newest.remoteFileId)
            let all = try await server.get("/files?prefix=").decoded(FileList.self)
            #expect(all.files.count == 5)
            let meta = try await server.get("/files/\(newest.remoteFileId)/meta")
                .decoded(FileMeta.self)
            #expect(meta.path == "trip/day 1/b.jpg")
        }
    }

    @Test func `a prefix that no path can have, and a cursor of the other order, are refused`()
        async throws
    {
        try await withServer { server in
            for number in 0..<2 {
                _ = try await server.upload([UInt8(number)], fileName: "x", path: "a/\(number)")
            }
            for query in ["prefix=%00", "prefix=\(String(repeating: "a", count: 1025))"] {
                try expectProblem(try await server.get("/files?\(query)"), .badRequest)
            }
            try expectProblem(try await server.get("/files?prefix=a&damaged=true"), .badRequest)
            let byPath = try await server.get("/files?prefix=a&limit=1").decoded(FileList.self)
            let byTime = try await server.get("/files?limit=1").decoded(FileList.self)
            let (pathCursor, timeCursor) = (try #require(byPath.next), try #require(byTime.next))
            try expectProblem(try await server.get("/files?after=\(pathCursor)"), .badRequest)
            try expectProblem(
                try await server.get("/files?prefix=a&after=\(timeCursor)"), .badRequest)
        }
    }

    @Test func `a server without files lists an empty page`() async throws {
        try await withServer { server in
            let page = try await server.get("/files").decoded(FileList.self)
            #expect(page.files.isEmpty)
            #expect(page.next == nil)
        }
    }

    @Test(arguments: ["0", "1001", ""] + HostileText.numbers)
    func `a page limit out of bounds is refused`(limit: String) async throws {
        try await SharedServer.use { server in
            try expectProblem(try await server.get("/files?limit=\(limit)"), .badRequest)
        }
    }

    @Test(arguments: [
        "", "x", "zz", "00", "2e", "312e", "2e30", "%00", String(repeating: "31", count: 1000),
        "392e" + String(repeating: "30", count: 31),
    ])
    func `a malformed page cursor is refused`(cursor: String) async throws {
        try await SharedServer.use { server in
            try expectProblem(try await server.get("/files?after=\(cursor)"), .badRequest)
        }
    }
}
