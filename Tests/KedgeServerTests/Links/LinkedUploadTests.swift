import Foundation
import KedgeHash
import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Uploads by a `put` link: its limits, its uses, and the link that continues the upload.
@Suite(.timeLimit(.minutes(2))) struct LinkedUploadTests {
    /// A protocol in which an upload is created.
    enum Door: CaseIterable, Sendable {
        case native, tus, resumable, whole
    }

    /// A file that a client declares.
    private struct Declared {
        var name = "film.mp4"
        var type = "video/mp4"
        var content = [UInt8](repeating: 7, count: 10)
    }

    private static func create(
        _ declared: Declared, by door: Door, _ link: CreateLinkResponse, on server: RunningServer
    ) async throws -> HTTPAnswer {
        let disposition = #"attachment; filename="\#(declared.name)""#
        let count = declared.content.count
        switch door {
        case .native:
            return try await server.ask(
                .createSession(
                    CreateSessionRequest(
                        fileName: declared.name, fileSize: Int64(count), mimeType: declared.type),
                    [], at: try target(link.sessionsUrl)))
        case .tus:
            let name = Data(declared.name.utf8).base64EncodedString()
            let type = Data(declared.type.utf8).base64EncodedString()
            return try await server.ask(
                .tus(
                    "POST", try target(link.tusUrl),
                    [
                        ("Upload-Length", "\(count)"),
                        ("Upload-Metadata", "filename \(name),filetype \(type)"),
                    ]))
        case .resumable:
            let fields = [
                ("Content-Type", declared.type), ("Content-Disposition", disposition),
                ("Upload-Length", "\(count)"), ("Upload-Complete", "?0"),
                ("Upload-Draft-Interop-Version", "9"),
            ]
            return try await server.askResumable(
                HTTPRequestBytes("POST", try target(link.url), fields, body: []))
        case .whole:
            return try await server.ask(
                HTTPRequestBytes(
                    "POST", try target(link.url),
                    [("Content-Type", declared.type), ("Content-Disposition", disposition)],
                    body: declared.content))
        }
    }

    @Test(arguments: Door.allCases)
    func `a file within the limits is taken, and one beyond them is not`(door: Door) async throws {
        try await withTokenServer { server in
            let link = try await server.makePutLink(
                #""maxFileSize":10,"minFileSize":5,"mimeTypes":["video/*"]"#,
                #""fileExtensions":["mp4"],"uses":100"#)
            let fitting = Declared()
            var (large, small, other, picture) = (fitting, fitting, fitting, fitting)
            large.content.append(7)
            small.content.removeLast(6)
            other.name = "film.exe"
            picture.type = "image/png"
            for (declared, code) in [
                (large, ErrorCode.fileTooLarge), (small, .forbidden), (other, .forbidden),
                (picture, .forbidden),
            ] as [(Declared, ErrorCode)] {
                let answer = try await Self.create(declared, by: door, link, on: server)
                try expectProblem(answer, code)
            }
            #expect(try await Self.create(fitting, by: door, link, on: server).status == 201)
        }
    }

    @Test(arguments: Door.allCases)
    func `a link names the file, and its metadata prevails`(door: Door) async throws {
        try await withTokenServer { server in
            let content = Declared().content
            let digest = SHA256Hasher.digest(of: content)
            let link = try await server.makePutLink(
                #""fileName":"Übung 1.mp4","fileSize":10,"fileHashSha256":"\#(digest)""#,
                #""metadata":{"path":"in/4711"}"#)
            try expectProblem(
                try await Self.create(Declared(), by: door, link, on: server), .forbidden)
            // A client that declares no name gets that of the link.
            let answer = try await server.ask(
                HTTPRequestBytes("POST", try target(link.url), body: content))
            #expect(answer.status == 201)
            let file = try answer.decoded(FinalizeResponse.self).remoteFileId
            let token = try await server.makeToken()
            let meta: FileMeta = try await server.get("/files/\(file)/meta", token.fields).decoded()
            #expect(meta.fileName == "Übung 1.mp4")
            #expect(meta.path == "in/4711")
            #expect(meta.sha256 == digest)
        }
    }

    @Test func `a file with another digest is refused`() async throws {
        try await withTokenServer { server in
            let digest = SHA256Hasher.digest(of: [1])
            let link = try await server.makePutLink(#""fileHashSha256":"\#(digest)""#)
            let answer = try await server.ask(
                HTTPRequestBytes("POST", try target(link.url), body: [2]))
            try expectProblem(answer, .integrityMismatch)
            // The failed upload gives the use back.
            let right = try await server.ask(
                HTTPRequestBytes("POST", try target(link.url), body: [1]))
            #expect(right.status == 201)
        }
    }

    @Test func `a client that defers the size does not get round the maximum`() async throws {
        try await withTokenServer { server in
            let link = try await server.makePutLink(#""maxFileSize":10"#)
            let created = try await server.ask(
                .tus("POST", try target(link.tusUrl), [("Upload-Defer-Length", "1")]))
            #expect(created.status == 201)
            let path = try #require(created.tusPath)
            let declared = try await server.ask(
                .tusPatch(path, at: 0, [], [("Upload-Length", "11")]))
            try expectProblem(declared, .fileTooLarge)
            let large = try await server.ask(
                .tusPatch(path, at: 0, [UInt8](repeating: 1, count: 11)))
            try expectProblem(large, .fileTooLarge)
        }
    }

    @Test(arguments: Door.allCases)
    func `a one-use link that is used again answers the same upload`(door: Door) async throws {
        try await withTokenServer { server in
            let link = try await server.makePutLink()
            let first = try await Self.create(Declared(), by: door, link, on: server)
            #expect(first.status == 201)
            let second = try await Self.create(Declared(), by: door, link, on: server)
            switch door {
            case .native:
                #expect(second.status == 201)
                let sessions = try [first, second].map {
                    try $0.decoded(CreateSessionResponse.self)
                }
                #expect(sessions[0].sessionId == sessions[1].sessionId)
                #expect(sessions[0].uploadLink == sessions[1].uploadLink)
            case .tus:
                #expect(second.status == 201)
                #expect(first.field("Location") == second.field("Location"))
                #expect(second.field("Upload-Offset") == "0")
            case .resumable:
                try #require(second.status == 409)
                #expect(first.field("Location") == second.field("Location"))
                #expect(second.field("Upload-Offset") == "0")
            case .whole:
                #expect(second.status == 201)
                #expect(first.body == second.body)
            }
            var other = Declared()
            other.name = "other.mp4"
            let refused = try await Self.create(other, by: door, link, on: server)
            try expectProblem(refused, .linkExpired)
        }
    }

    @Test func `a repeated creation takes no bytes and cancels nothing`() async throws {
        try await withTokenServer { server in
            let link = try await server.makePutLink()
            let endpoint = try target(link.tusUrl)
            let created = try await server.ask(.tus("POST", endpoint, [("Upload-Length", "4")]))
            let path = try #require(created.tusPath)
            #expect(try await server.ask(.tusPatch(path, at: 0, [1, 2])).status == 204)
            let again = try await server.ask(
                .tus(
                    "POST", endpoint,
                    [
                        ("Upload-Length", "4"),
                        ("Content-Type", "application/offset+octet-stream"),
                    ], body: [9, 9, 9, 9]))
            #expect(again.status == 201)
            #expect(again.tusPath == path)
            #expect(again.field("Upload-Offset") == "2")
            try await expectOffset(2, of: path, on: server)
            let last = try await server.ask(.tusPatch(path, at: 2, [3, 4]))
            let location = try #require(last.field("Content-Location"))
            let token = try await server.makeToken()
            #expect(try await server.get(location, token.fields).body == [1, 2, 3, 4])
        }
    }

    @Test func `fifty clients of a one-use link create one session`() async throws {
        try await withTokenServer { server in
            let link = try await server.makePutLink()
            let request = try HTTPRequestBytes.createSession(
                CreateSessionRequest(fileName: "a.bin", fileSize: 10), [],
                at: try target(link.sessionsUrl))
            let answers = try await withThrowingTaskGroup(of: HTTPAnswer.self) { group in
                for _ in 0..<50 { group.addTask { try await server.ask(request) } }
                return try await group.reduce(into: [HTTPAnswer]()) { $0.append($1) }
            }
            #expect(answers.count == 50)
            let ids = try answers.map { answer in
                #expect(answer.status == 201)
                return try answer.decoded(CreateSessionResponse.self).sessionId
            }
            #expect(Set(ids).count == 1)
            let token = try await server.makeToken()
            let list = try await server.get("/uploads/sessions", token.fields)
            #expect(try list.decoded(SessionList.self).sessions.count == 1)
        }
    }

    @Test func `a link with two uses creates two uploads`() async throws {
        try await withTokenServer { server in
            let link = try await server.makePutLink(#""uses":2"#)
            for status in [201, 201, 403] {
                let answer = try await Self.create(Declared(), by: .native, link, on: server)
                #expect(answer.status == status)
            }
        }
    }

    @Test func `an upload by link learns nothing of the owner's other files`() async throws {
        try await withTokenServer { server in
            let content = sampleBytes(10)
            _ = try await server.storeFile(content)
            let old = try await server.createSession(byteCount: 10)
            let link = try await server.makePutLink(#""uses":2"#)
            let path = try target(link.sessionsUrl)
            let answer = try await server.ask(
                .createSession(
                    CreateSessionRequest(fileName: "a.txt", fileSize: 10), [],
                    at: "\(path)&storedFiles=true"))
            let session = try answer.decoded(CreateSessionResponse.self)
            #expect(session.storedFiles == nil)
            let upload = Upload(content: content, chunkSize: 10, id: session.sessionId)
            var finalize = upload.finalize(upload.digest)
            finalize.target += "?link=\(try linkText(session.uploadLink))"
            try expectProblem(try await server.ask(finalize), .missingChunks)
            let adopting = try await server.ask(
                .createSession(
                    CreateSessionRequest(fileName: "a", fileSize: 10, adoptSessionId: old), [],
                    at: path))
            try expectProblem(adopting, .forbidden)
        }
    }

    @Test func `the link of a session ends a day after its file was made`() async throws {
        try await withTokenServer { server in
            let link = try await server.makePutLink()
            let created = try await server.ask(
                .tus("POST", try target(link.tusUrl), [("Upload-Length", "2")]))
            let path = try #require(created.tusPath)
            #expect(try await server.ask(.tusPatch(path, at: 0, [1, 2])).status == 204)
            let text = try linkText(path)
            let id = String(path.dropFirst("/tus/".count).prefix(32))
            let requests: [HTTPRequestBytes] = [
                .tus("HEAD", path),
                HTTPRequestBytes("GET", "/uploads/sessions/\(id)?link=\(text)"),
                HTTPRequestBytes("POST", "/uploads/sessions/\(id)/finalize?link=\(text)"),
                HTTPRequestBytes("HEAD", "/uploads/resumable/\(id)?link=\(text)"),
            ]
            server.fixture.clock.advance(by: .seconds(24 * 3600) - .milliseconds(1))
            for request in requests {
                #expect(try await server.connect().ask(request).status < 300, "\(request.target)")
            }
            server.fixture.clock.advance(by: .milliseconds(1))
            for request in requests {
                #expect(try await server.connect().ask(request).status == 403, "\(request.target)")
            }
        }
    }

    @Test(
        arguments: [
            (.auto, false), (.always, true), (.never, false),
        ] as [(LinkPlacement, Bool)])
    func `a setting says whether an upload by token gets a link`(
        placement: LinkPlacement, getsLink: Bool
    ) async throws {
        try await withServer {
            $0.identityMode = .tokens
            $0.linkPlacement = placement
        } _: { server in
            let token = try await server.makeToken()
            let native = try await server.ask(
                .createSession(CreateSessionRequest(fileName: "a", fileSize: 1), token.fields))
            let session = try native.decoded(CreateSessionResponse.self)
            #expect((session.uploadLink != nil) == getsLink)
            #expect(native.field("Location") == "/uploads/sessions/\(session.sessionId)")
            let tus = try await server.ask(
                .tus("POST", "/tus/", [("Upload-Length", "1")] + token.fields))
            #expect(tus.tusPath?.contains("?link=kl1.") == getsLink)
            let resumable = try await server.askResumable(
                HTTPRequestBytes(
                    "POST", "/files",
                    [("Upload-Complete", "?0"), ("Upload-Draft-Interop-Version", "9")]
                        + token.fields, body: []))
            #expect(resumable.field("Location")?.contains("?link=kl1.") == getsLink)
        }
    }

    @Test func `an IETF upload by link goes on by the link in Location`() async throws {
        try await withTokenServer { server in
            let content = sampleBytes(1000)
            for client in ResumableClient.versioned {
                let link = try await server.makePutLink()
                let created = try await server.askResumable(
                    client.create(
                        Array(content[..<400]), at: try target(link.url), completes: false))
                let location = try #require(created.field("Location"))
                #expect(location.hasPrefix("/uploads/resumable/"))
                #expect(location.contains("?link=kl1."))
                let head = try await server.connect().ask(client.head(location))
                #expect(head.field("Upload-Offset") == "400", "\(client)")
                let last = try await server.askResumable(
                    client.append(
                        Array(content[400...]), to: location, at: 400, completes: true))
                #expect(last.status == 201 || last.status == 200, "\(client)")
                let file = try last.decoded(FinalizeResponse.self)
                #expect(file.fileHashSha256 == SHA256Hasher.digest(of: content))
            }
        }
    }
}
