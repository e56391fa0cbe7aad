import KedgeModel
import KedgeTesting
import Testing

/// `DELETE` on an upload.
@Suite(.timeLimit(.minutes(1))) struct TusTerminationTests {
    private static func requests(_ path: String) -> [HTTPRequestBytes] {
        [.tusPatch(path, at: 0, [1]), .tus("DELETE", path), .tus("GET", path)]
    }

    @Test func `a terminated upload is not found`() async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 10)
            _ = try await server.ask(.tusPatch(path, at: 0, [1, 2, 3]))
            #expect(try await server.ask(.tus("DELETE", path)).status == 204)
            #expect(try await server.tusHead(path).status == 404)
            for request in Self.requests(path) {
                try expectProblem(try await server.ask(request), .sessionNotFound)
            }
        }
    }

    @Test(arguments: [false, true])
    func `a finished upload and its file are deleted together`(
        isFileDeleted: Bool
    ) async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            _ = try await server.ask(.tusPatch(path, at: 0, [1, 2, 3]))
            let id = path.split(separator: "/").last ?? ""
            let status: SessionStatus = try await server.get("/uploads/sessions/\(id)").decoded()
            let file = "/files/\(try #require(status.remoteFileId))"
            let deletion =
                isFileDeleted ? HTTPRequestBytes("DELETE", file) : .tus("DELETE", path)
            #expect(try await server.ask(deletion).status == 204)
            try expectProblem(try await server.get(file), .fileGone)
            let head = try await server.tusHead(path)
            #expect(head.status == 410)
            #expect(head.field("Upload-Offset") == nil)
            for request in Self.requests(path) + [.tusPatch(path, at: 3, [])] {
                try expectProblem(try await server.ask(request), .fileGone)
            }
        }
    }

    @Test func `a deletion during the last append deletes the upload or its file`() async throws {
        try await SharedServer.use { server in
            for _ in 0..<40 {
                let path = try await server.tusUpload(byteCount: 3)
                // The append may be refused, because the upload is gone.
                async let append = try? server.ask(.tusPatch(path, at: 0, [1, 2, 3]))
                async let deletion = server.ask(.tus("DELETE", path))
                #expect(try await deletion.status == 204)
                _ = await append
                #expect([404, 410].contains(try await server.tusHead(path).status))
            }
        }
    }
}
