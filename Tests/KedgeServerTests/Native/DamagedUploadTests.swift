import Glibc
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Requests to an upload, by tus and the IETF draft, after its finished file was found damaged.
@Suite(.timeLimit(.minutes(1))) struct DamagedUploadTests {
    private static let client = ResumableClient(interopVersion: .interop8)
    private let content = sampleBytes(3000, seed: 21)

    /// Uploads by tus, then truncates the blob and lets the service find that.
    private func damagedUpload(_ server: RunningServer) async throws -> (path: String, id: String) {
        let path = try await upload(server)
        let id = String(path.split(separator: "/").last ?? "")
        let status: SessionStatus = try await server.get("/uploads/sessions/\(id)").decoded()
        let hex = try #require(status.fileHashSha256).hex
        let parent = "\(hex.prefix(2))/\(hex.dropFirst(2).prefix(2))"
        let blob = "\(server.fixture.configuration.dataDirectory)/blobs/\(parent)/\(hex)"
        #expect(truncate(blob, 1000) == 0)
        try expectProblem(try await server.ask(.tus("GET", path)), .fileDamaged)
        return (path, id)
    }

    private func upload(_ server: RunningServer) async throws -> String {
        let path = try await server.tusUpload(byteCount: content.count)
        #expect(try await server.ask(.tusPatch(path, at: 0, content)).status == 204)
        return path
    }

    @Test func `a damaged upload is gone for clients that resume, and heals with a new upload`()
        async throws
    {
        try await withServer { server in
            let (path, id) = try await damagedUpload(server)
            let ietf = Self.client.head("/uploads/resumable/\(id)")
            for head in [HTTPRequestBytes.tus("HEAD", path), ietf] {
                let answer = try await server.connect().ask(head)
                #expect(answer.status == 410)
                #expect(answer.field("Upload-Offset") == nil)
                #expect(answer.field("Repr-Digest") == nil)
            }
            _ = try await upload(server)
            for head in [HTTPRequestBytes.tus("HEAD", path), ietf] {
                let answer = try await server.connect().ask(head)
                #expect(answer.status == (head.target == path ? 200 : 204))
                #expect(answer.field("Upload-Offset") == "\(content.count)")
                #expect(answer.field("Repr-Digest") != nil)
            }
        }
    }

    @Test func `a damaged upload can be terminated`() async throws {
        try await withServer { server in
            let (path, _) = try await damagedUpload(server)
            #expect(try await server.ask(.tus("DELETE", path)).status == 204)
            try expectProblem(try await server.ask(.tus("GET", path)), .fileGone)
        }
    }
}
