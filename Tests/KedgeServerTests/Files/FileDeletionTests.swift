import KedgeModel
import KedgeTesting
import Testing

/// `DELETE /files/{fileId}`.
@Suite(.timeLimit(.minutes(1))) struct FileDeletionTests {
    @Test func `a deleted file is gone, for good and everywhere`() async throws {
        let fixture = try await ServerEnvironment()
        let path = try await fixture.withServer { server in
            let path = "/files/\(try await server.upload(sampleBytes(2500)).remoteFileId)"
            let answer = try await server.ask(HTTPRequestBytes("DELETE", path))
            #expect(answer.status == 204)
            #expect(answer.body.isEmpty)
            return path
        }
        try await fixture.withServer { server in
            for target in [path, path + "/meta", path + "/chunks"] {
                try expectProblem(try await server.get(target), .fileGone)
            }
            #expect(try await server.ask(HTTPRequestBytes("HEAD", path)).status == 410)
            let list = try await server.get("/files").decoded(FileList.self)
            #expect(list.files.isEmpty)
        }
    }

    /// An answer that names a file promises that the file is there.
    @Test func `finalizing the session of a deleted file reports that the file is gone`()
        async throws
    {
        let fixture = try await ServerEnvironment()
        let upload = try await fixture.withServer { server in
            let upload = try await server.begin(sampleBytes(2500))
            for index in 0..<upload.chunkCount { _ = try await server.ask(upload.put(index)) }
            let file = try await server.ask(upload.finalize()).decoded(FinalizeResponse.self)
            _ = try await server.ask(HTTPRequestBytes("DELETE", "/files/\(file.remoteFileId)"))
            try expectProblem(try await server.ask(upload.finalize()), .fileGone)
            return upload
        }
        try await fixture.withServer { server in
            try expectProblem(try await server.ask(upload.finalize()), .fileGone)
        }
    }

    @Test func `deleting a file is idempotent`() async throws {
        try await SharedServer.use { server in
            let path = "/files/\(try await server.upload(sampleBytes(10)).remoteFileId)"
            for _ in 0..<3 {
                let answer = try await server.ask(HTTPRequestBytes("DELETE", path))
                #expect(answer.status == 204)
            }
        }
    }

    /// The bytes stay while a download reads them.
    @Test func `a download under way completes after the file is deleted`() async throws {
        try await withServer { server in
            let content = [UInt8](repeating: 7, count: 24 << 20)
            let file = try await server.ask(HTTPRequestBytes("POST", "/files", body: content))
                .decoded(FinalizeResponse.self)
            let path = "/files/\(file.remoteFileId)"
            let reader = try await server.connect()
            try await reader.send(HTTPRequestBytes("GET", path))
            try await reader.readSome()
            let gone = try await server.ask(HTTPRequestBytes("DELETE", path))
            #expect(gone.status == 204)
            let answer = try await reader.answer()
            #expect(answer.isWhole)
            #expect(answer.body == content)
        }
    }
}
