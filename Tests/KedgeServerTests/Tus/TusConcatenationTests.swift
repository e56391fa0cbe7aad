import KedgeEngine
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Final uploads, which are concatenated from partial ones.
@Suite(.timeLimit(.minutes(1))) struct TusConcatenationTests {
    private static func final(
        _ parts: [String], _ fields: [(String, String)] = []
    ) -> HTTPRequestBytes {
        .tus(
            "POST", "/tus/",
            [("Upload-Concat", "final;" + parts.joined(separator: " "))] + fields)
    }

    @Test func `a final upload has the bytes of its parts in their order`() async throws {
        try await SharedServer.use { server in
            let contents = [sampleBytes(5000, seed: 51), [], sampleBytes(3000, seed: 52)]
            var parts: [String] = []
            for content in contents { parts.append(try await server.tusPart(content)) }
            let metadata = "filename " + Base64.encode(Array("whole.bin".utf8))
            let answer = try await server.ask(
                Self.final(parts, [("Upload-Metadata", metadata)]))
            #expect(answer.status == 201)
            let path = try #require(answer.tusPath)
            let head = try await server.tusHead(path)
            #expect(head.field("Upload-Offset") == "8000")
            #expect(head.field("Upload-Length") == "8000")
            #expect(
                head.field("Upload-Concat") == "final;" + parts.joined(separator: " "))
            #expect(head.field("Upload-Metadata") == metadata)
            let file = try await server.get(path)
            #expect(file.body == contents.flatMap { $0 })
            #expect(file.field("Content-Disposition")?.contains("whole.bin") == true)
        }
    }

    @Test func `partial uploads stay partial and can be concatenated again`() async throws {
        try await SharedServer.use { server in
            let part = try await server.tusPart([1, 2, 3])
            let other = try await server.tusPart([4])
            let head = try await server.tusHead(part)
            #expect(head.field("Upload-Concat") == "partial")
            #expect(head.field("Upload-Offset") == "3")
            let wholes: [(parts: [String], content: [UInt8])] = [
                ([part], [1, 2, 3]), ([other, part], [4, 1, 2, 3]),
            ]
            for (parts, content) in wholes {
                let path = try #require(
                    try await server.ask(Self.final(parts)).tusPath)
                #expect(try await server.get(path).body == content)
            }
            let id = part.split(separator: "/").last ?? ""
            let status: SessionStatus = try await server.get("/uploads/sessions/\(id)").decoded()
            #expect(status.state == .open)
        }
    }

    /// Each final upload copies all bytes at the cost of one small request.
    @Test func `the number of final uploads of the same parts is limited`() async throws {
        try await withServer { server in
            var parts: [String] = []
            for seed in UInt64(54)..<59 {
                parts.append(try await server.tusPart(sampleBytes(500, seed: seed)))
            }
            var made = 0
            for first in 0..<5 {
                for second in 0..<5 where second != first {
                    let rest = (0..<5).filter { $0 != first && $0 != second }
                    let order = ([first, second] + rest).map { parts[$0] }
                    let answer = try await server.ask(Self.final(order))
                    if answer.status == 201 {
                        made += 1
                    } else {
                        try expectProblem(answer, .badRequest)
                    }
                    // A repeated request gives the same upload, and no further copy.
                    let again = try await server.ask(Self.final(order))
                    #expect(again.status == answer.status)
                }
            }
            #expect(made == 8)
            #expect(try await server.get("/files").decoded(FileList.self).files.count == 8)
        }
    }

    @Test(arguments: ["", "http://localhost", "https://files.example/behind/a/proxy"])
    func `partial uploads may be named by absolute URLs`(prefix: String) async throws {
        try await SharedServer.use { server in
            let part = try await server.tusPart(sampleBytes(100, seed: 53))
            let answer = try await server.ask(Self.final([prefix + part]))
            #expect(answer.status == 201)
        }
    }

    @Test func `a final upload accepts no bytes`() async throws {
        try await SharedServer.use { server in
            let part = try await server.tusPart([1, 2, 3])
            let path = try #require(try await server.ask(Self.final([part])).tusPath)
            for offset in [0, 3] {
                let answer = try await server.ask(.tusPatch(path, at: offset, [4]))
                try expectProblem(answer, .uploadIsFinal)
                #expect(answer.status == 403)
            }
        }
    }

    /// A client that missed the answer repeats the request, and must not get a second copy.
    @Test func `a repeated concatenation gives the same upload until that is deleted`() async throws
    {
        try await SharedServer.use { server in
            let part = try await server.tusPart(sampleBytes(100, seed: 54))
            let first = try await server.ask(Self.final([part])).tusPath
            let path = try #require(first)
            #expect(try await server.ask(Self.final([part])).tusPath == path)
            let other = try await server.ask(Self.final([part], [("Upload-Metadata", "a")]))
            #expect(other.tusPath != path)
            _ = try await server.ask(.tus("DELETE", path))
            let again = try await server.ask(Self.final([part])).tusPath
            #expect(again != path)
            #expect(try await server.get(try #require(again)).body.count == 100)
        }
    }

    @Test func `a final upload requested early becomes a file with its last part`() async throws {
        try await SharedServer.use { server in
            let contents = [sampleBytes(4000, seed: 55), sampleBytes(2000, seed: 56)]
            let whole = try await server.tusPart(contents[0])
            let late = try await server.tusUpload([
                ("Upload-Defer-Length", "1"), ("Upload-Concat", "partial"),
            ])
            let answer = try await server.ask(Self.final([whole, late]))
            #expect(answer.status == 201)
            #expect(answer.field("Upload-Offset") == nil)
            let path = try #require(answer.tusPath)
            let before = try await server.tusHead(path)
            #expect(before.status == 200)
            #expect(before.field("Upload-Offset") == nil)
            #expect(before.field("Upload-Length") == nil)
            #expect(before.field("Upload-Concat")?.hasPrefix("final;") == true)
            try expectProblem(try await server.get(path), .missingChunks)
            try expectProblem(
                try await server.ask(.tusPatch(path, at: 0, [1])), .uploadIsFinal)
            let half = HTTPRequestBytes.tusPatch(
                late, at: 0, Array(contents[1][..<1000]), [("Upload-Length", "2000")])
            #expect(try await server.ask(half).status == 204)
            #expect(try await server.tusHead(path).field("Upload-Length") == "6000")
            let rest = HTTPRequestBytes.tusPatch(late, at: 1000, Array(contents[1][1000...]))
            #expect(try await server.ask(rest).status == 204)
            let id = path.split(separator: "/").last ?? ""
            let status: SessionStatus = try await server.get("/uploads/sessions/\(id)").decoded()
            #expect(status.state == .completed)
            let after = try await server.tusHead(path)
            #expect(after.field("Upload-Offset") == "6000")
            #expect(after.field("Upload-Length") == "6000")
            #expect(try await server.get(path).body == contents.flatMap { $0 })
        }
    }

    @Test func `a waiting final upload is completed after a restart`() async throws {
        let fixture = try await ServerEnvironment()
        let (path, late) = try await fixture.withServer { server in
            let late = try await server.tusUpload([
                ("Upload-Length", "3"), ("Upload-Concat", "partial"),
            ])
            let answer = try await server.ask(Self.final([late]))
            return (try #require(answer.tusPath), late)
        }
        try await fixture.withServer { server in
            _ = try await server.ask(.tusPatch(late, at: 0, [1, 2, 3]))
            #expect(
                try await eventually(within: .seconds(30)) {
                    try await server.get(path).status != 409
                })
            #expect(try await server.get(path).body == [1, 2, 3])
        }
    }

    @Test func `a final upload whose part is deleted is gone, too`() async throws {
        try await SharedServer.use { server in
            let late = try await server.tusUpload([
                ("Upload-Length", "3"), ("Upload-Concat", "partial"),
            ])
            let path = try #require(try await server.ask(Self.final([late])).tusPath)
            _ = try await server.ask(.tus("DELETE", late))
            let head = try await server.tusHead(path)
            #expect(head.status == 410)
        }
    }

    @Test(arguments: [
        "", "Partial", "partial;", "final", "final;", "final; ", "final;x",
        "final;/tus/00000000000000000000000000000000", "other",
    ])
    func `a malformed Upload-Concat is refused`(value: String) async throws {
        try await SharedServer.use { server in
            let answer = try await server.ask(
                .tus(
                    "POST", "/tus/",
                    [("Upload-Length", "1"), ("Upload-Concat", value)]
                        .filter { $0.0 != "Upload-Length" || !value.hasPrefix("final") }))
            try expectProblem(answer, .badRequest)
        }
    }

    @Test func `a concatenation that names a part twice is refused`() async throws {
        try await SharedServer.use { server in
            let part = try await server.tusPart([1, 2, 3])
            let other = try await server.tusPart([4])
            let answer = try await server.ask(
                Self.final([part, other, "http://localhost\(part)"]))
            let problem = try expectProblem(answer, .badRequest)
            #expect(problem.detail?.contains("Upload-Concat") == true)
        }
    }

    @Test func `a concatenation of more parts than the limit is refused`() async throws {
        try await withServer {
            $0.engine.maxSourceCount = 2
        } _: { server in
            let parts = [
                try await server.tusPart([1]), try await server.tusPart([2]),
                try await server.tusPart([3]),
            ]
            let answer = try await server.ask(Self.final(parts))
            let problem = try expectProblem(answer, .badRequest)
            #expect(problem.detail?.contains("Upload-Concat") == true)
            #expect(try await server.ask(Self.final(Array(parts[..<2]))).status == 201)
        }
    }

    @Test func `only partial uploads can be concatenated`() async throws {
        try await SharedServer.use { server in
            let path = try await server.tusUpload(byteCount: 3)
            _ = try await server.ask(.tusPatch(path, at: 0, [1, 2, 3]))
            try expectProblem(try await server.ask(Self.final([path])), .badRequest)
        }
    }

    @Test func `a concatenation with a length or a body is refused`() async throws {
        try await SharedServer.use { server in
            let part = try await server.tusPart([1, 2, 3])
            try expectProblem(
                try await server.ask(Self.final([part], [("Upload-Length", "3")])), .badRequest)
            var request = Self.final(
                [part], [("Content-Type", "application/offset+octet-stream")])
            request.body = [1]
            try expectProblem(try await server.ask(request), .badRequest)
        }
    }
}
