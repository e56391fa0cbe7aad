import Glibc
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// One session through several protocols.
@Suite(.timeLimit(.minutes(1))) struct TusCrossingTests {
    @Test func `tus appends and native chunks continue the same session`() async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(3500, seed: 61)
            let upload = try await server.begin(content)
            let path = "/tus/\(upload.id)"
            _ = try await server.ask(upload.put(0))
            try await expectOffset(1000, of: path, on: server)
            _ = try await server.ask(.tusPatch(path, at: 1000, Array(content[1000..<1500])))
            _ = try await server.ask(upload.put(1, from: 500))
            _ = try await server.ask(upload.put(3))
            try await expectOffset(2000, of: path, on: server)
            #expect(try await server.status(of: upload).receivedChunks == [0, 1, 3])
            let patch = try await server.ask(
                .tusPatch(path, at: 2000, Array(content[2000...])))
            #expect(patch.status == 204)
            let status = try await server.status(of: upload)
            #expect(status.state == .completed)
            #expect(status.fileHashSha256 == upload.digest)
            #expect(try await server.get(path).body == content)
        }
    }

    @Test func `the same bytes have one entity tag, whatever protocol brought them`() async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(5000, seed: 62)
            let native = try await server.upload(content)
            let path = try await server.tusUpload(byteCount: content.count)
            _ = try await server.ask(.tusPatch(path, at: 0, content))
            #expect(try await server.get(path).field("ETag") == native.etag)
        }
    }

    @Test func `a complete tus upload can be finalized natively`() async throws {
        try await SharedServer.use { server in
            let content = sampleBytes(100, seed: 63)
            let path = try await server.tusUpload(byteCount: content.count)
            _ = try await server.ask(.tusPatch(path, at: 0, content))
            let id = path.split(separator: "/").last ?? ""
            let session = "/uploads/sessions/\(id)"
            let answer = try await server.ask(HTTPRequestBytes("POST", "\(session)/finalize"))
            #expect(answer.status == 200)
            let status: SessionStatus = try await server.get(session).decoded()
            #expect(try answer.decoded(FinalizeResponse.self).remoteFileId == status.remoteFileId)
        }
    }

    @Test func `HEAD of an upload whose stored bytes are damaged reports where to continue`()
        async throws
    {
        try await withServer { server in
            let content = sampleBytes(3500, seed: 64)
            let upload = try await server.begin(content)
            let path = "/tus/\(upload.id)"
            for index in [1, 2, 3] { _ = try await server.ask(upload.put(index)) }
            let key = String("\(upload.id)".filter { $0 != "-" })
            let data = server.fixture.configuration.dataDirectory
            #expect(truncate("\(data)/staging/\(key.prefix(2))/\(key)", 2100) == 0)
            _ = try await server.ask(upload.put(0))
            try await expectOffset(2000, of: path, on: server)
            let rest = HTTPRequestBytes.tusPatch(path, at: 2000, Array(content[2000...]))
            #expect(try await server.ask(rest).status == 204)
            #expect(try await server.get(path).body == content)
        }
    }
}
