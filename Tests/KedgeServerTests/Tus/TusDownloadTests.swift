import KedgeModel
import KedgeTesting
import Testing

/// `GET` on an upload.
@Suite(.timeLimit(.minutes(1))) struct TusDownloadTests {
    @Test func `a finished upload is served like its file`() async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(9000, seed: 41)
            let path = try await server.tusUpload(byteCount: content.count)
            _ = try await server.ask(.tusPatch(path, at: 0, content))
            let id = path.split(separator: "/").last ?? ""
            let status: SessionStatus = try await server.get("/uploads/sessions/\(id)").decoded()
            let file = "/files/\(try #require(status.remoteFileId))"
            let etag = try #require(try await server.get(file).field("ETag"))
            for fields in [
                [], [("Range", "bytes=100-199")], [("Range", "bytes=-1, 0-0")],
                [("Range", "bytes=9000-")], [("If-None-Match", etag)],
                [("If-Match", "\"other\"")], [("Range", "bytes=5-"), ("If-Range", etag)],
            ] {
                let answer = try await server.get(path, fields)
                let expected = try await server.get(file, fields)
                #expect(answer.status == expected.status)
                #expect(answer.body.count == expected.body.count)
                for name in ["ETag", "Content-Range", "Accept-Ranges", "Content-Disposition"] {
                    #expect(answer.field(name) == expected.field(name))
                }
            }
            #expect(
                try await server.get(path, [("Range", "bytes=100-199")]).body
                    == Array(content[100..<200]))
        }
    }

    @Test func `an upload with missing bytes is not served`() async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 10)
            _ = try await server.ask(.tusPatch(path, at: 0, [1, 2, 3]))
            try expectProblem(try await server.get(path), .missingChunks)
        }
    }

    @Test func `a partial upload is not served as a file`() async throws {
        try await SharedServer.use { server in
            let part = try await server.tusPart([1, 2, 3])
            try expectProblem(try await server.get(part), .fileNotFound)
        }
    }
}
