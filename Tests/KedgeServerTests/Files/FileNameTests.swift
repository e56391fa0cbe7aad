import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// File names at every endpoint that takes one.
@Suite(.timeLimit(.minutes(1))) struct FileNameTests {
    struct Name: Sendable {
        var sent: String
        var kept: String
    }

    private static let names = [
        Name(sent: "דוח\u{200E}(1)\u{200F}.pdf", kept: "דוח\u{200E}(1)\u{200F}.pdf"),
        Name(sent: "می\u{200C}خواهم\u{200D}.txt", kept: "می\u{200C}خواهم\u{200D}.txt"),
        Name(sent: "a\u{202E}gpj.exe", kept: "a_gpj.exe"),
        Name(sent: "\u{202A}\u{202B}\u{202C}\u{202D}a", kept: "____a"),
        Name(sent: "\u{2066}\u{2067}\u{2068}\u{2069}a", kept: "____a"),
        Name(sent: "a\u{85}\u{9B}b\u{2028}\u{2029}\u{FEFF}\u{61C}", kept: "a__b____"),
    ]

    private static func disposition(_ name: String) -> [(String, String)] {
        let encoded = name.utf8.map { "%" + Hex.encode([$0]) }.joined()
        return [("Content-Disposition", "attachment; filename*=UTF-8''\(encoded)")]
    }

    private func expect(
        _ name: Name, _ answer: HTTPAnswer, on server: RunningServer,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let location = try #require(answer.field("Location"), sourceLocation: sourceLocation)
        let file = try #require(location.split(separator: "/").last, sourceLocation: sourceLocation)
        let meta = try await server.get("/files/\(file)/meta").decoded(FileMeta.self)
        #expect(meta.fileName == name.kept, sourceLocation: sourceLocation)
    }

    @Test(arguments: names)
    func `a session keeps the letters of its file name and replaces misleading characters`(
        name: Name
    ) async throws {
        try await SharedServer.use { server in
            let answer = try await server.ask(
                .createSession(CreateSessionRequest(fileName: name.sent, fileSize: 1)))
            #expect(answer.status == 201)
            let path = try #require(answer.field("Location"))
            let status = try await server.get(path)
            #expect(try status.decoded(SessionStatus.self).fileName == name.kept)
            let text = String(decoding: status.body, as: UTF8.self)
            #expect(!text.unicodeScalars.contains(where: ControlCharacters.steers))
        }
    }

    @Test(arguments: names)
    func `a whole file keeps the letters of its name and replaces misleading characters`(name: Name)
        async throws
    {
        try await SharedServer.use { server in
            let fields = Self.disposition(name.sent)
            let answer = try await server.ask(
                HTTPRequestBytes("POST", "/files", fields, body: [1]))
            try await expect(name, answer, on: server)
            // The unencoded name, as curl sends it.
            let plain = [("Content-Disposition", "attachment; filename=\"\(name.sent)\"")]
            guard !name.sent.unicodeScalars.contains(where: { $0.value < 0xA0 && $0.value > 0x7E })
            else { return }
            try await expect(
                name, server.ask(HTTPRequestBytes("POST", "/files", plain, body: [1])), on: server)
        }
    }

    @Test(arguments: names, ResumableClient.versioned)
    func `a resumable upload keeps the letters of its file name and replaces misleading characters`(
        name: Name, client: ResumableClient
    ) async throws {
        try await SharedServer.use { server in
            let connection = try await server.connect()
            try await connection.send(
                client.create([1], completes: true, Self.disposition(name.sent)))
            let answer = try await connection.finalAnswer()
            let file = try answer.decoded(FinalizeResponse.self)
            let meta = try await server.get("/files/\(file.remoteFileId)/meta")
            #expect(try meta.decoded(FileMeta.self).fileName == name.kept)
        }
    }

    @Test(arguments: names)
    func `a tus upload keeps the letters of its file name and replaces misleading characters`(
        name: Name
    ) async throws {
        try await SharedServer.use { server in
            let value = Base64.encode(Array(name.sent.utf8))
            let path = try await server.tusUpload([
                ("Upload-Length", "1"), ("Upload-Metadata", "filename \(value)"),
            ])
            _ = try await server.ask(.tusPatch(path, at: 0, [7]))
            let download = try await server.get(path)
            let disposition = try #require(download.field("Content-Disposition"))
            #expect(ContentDisposition.fileName(in: disposition) == name.kept)
        }
    }
}
