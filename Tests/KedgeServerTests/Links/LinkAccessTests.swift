import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// The operations that each kind of link permits, and the objects for which it does.
@Suite(.timeLimit(.minutes(2))) struct LinkAccessTests {
    private static let unknown = String(repeating: "0", count: 32)

    /// A link of each kind, with the session or file that it is for.
    private static func link(
        _ kind: LinkKind, on server: RunningServer
    ) async throws -> (text: String, object: String) {
        switch kind {
        case .put: return (try linkText(try await server.makePutLink().url), unknown)
        case .session:
            let id = try await server.createSession(byteCount: 10)
            return (try linkText(try await server.makeSessionLink(id).url), id.text)
        case .get:
            let id = try await server.storeFile([1, 2, 3])
            return (try linkText(try await server.makeGetLink(id).url), id.text)
        }
    }

    @Test(arguments: LinkKind.allCases, [false, true])
    func `a link permits the operations of its kind, and no others`(
        kind: LinkKind, isBearer: Bool
    ) async throws {
        try await withTokenServer { server in
            let (text, object) = try await Self.link(kind, on: server)
            let operations = ServiceOperations.all(engine: server.engine)
            for (operation, access) in operations.sorted(by: { $0.key < $1.key }) {
                let words = operation.split(separator: " ")
                let path = words[1].split(separator: "/", omittingEmptySubsequences: false)
                    .map { part in
                        part == "{index}" ? "0" : part.hasPrefix("{") ? object : String(part)
                    }.joined(separator: "/")
                let answer = try await server.connect().ask(
                    HTTPRequestBytes(
                        String(words[0]), isBearer ? path : "\(path)?link=\(text)",
                        isBearer ? [("Authorization", "Bearer \(text)")] : []))
                if access == .public || access.links.contains(kind) {
                    #expect(![401, 403].contains(answer.status), "\(operation): \(answer.status)")
                } else {
                    #expect(answer.status == 403, "\(operation)")
                }
            }
        }
    }

    @Test func `a link of another session answers like an unknown id, in each protocol`()
        async throws
    {
        try await withTokenServer { server in
            let mine = try await server.createSession(byteCount: 10)
            let other = try await server.createSession(byteCount: 10)
            let text = try linkText(try await server.makeSessionLink(mine).url)
            let tus = [("Tus-Resumable", "1.0.0")]
            let append =
                tus + [
                    ("Upload-Offset", "0"), ("Content-Type", "application/offset+octet-stream"),
                ]
            let resume = [("Upload-Offset", "0"), ("Upload-Complete", "?0")]
            for (method, path, fields) in [
                ("GET", "/uploads/sessions/ID", []), ("DELETE", "/uploads/sessions/ID", []),
                ("POST", "/uploads/sessions/ID/finalize", []),
                (
                    "PUT", "/uploads/sessions/ID/chunks/0",
                    [
                        ("Content-Range", "bytes 0-9/10"),
                        ("X-Chunk-Hash", "sha256=" + String(repeating: "0", count: 64)),
                    ]
                ),
                ("HEAD", "/tus/ID", tus), ("PATCH", "/tus/ID", append), ("DELETE", "/tus/ID", tus),
                ("HEAD", "/uploads/resumable/ID", resume), ("GET", "/uploads/resumable/ID", resume),
                ("PATCH", "/uploads/resumable/ID", resume),
                ("DELETE", "/uploads/resumable/ID", resume),
            ] as [(String, String, [(String, String)])] {
                var answers: [HTTPAnswer] = []
                for id in [other.text, Self.unknown] {
                    let target = path.replacing("ID", with: id) + "?link=\(text)"
                    answers.append(
                        try await server.connect().ask(HTTPRequestBytes(method, target, fields)))
                }
                #expect(answers[0].status == 404, "\(method) \(path)")
                #expect(answers[0].comparable == answers[1].comparable, "\(method) \(path)")
            }
            #expect(
                try await server.get("/uploads/sessions/\(mine)?link=\(text)").status == 200)
        }
    }

    @Test func `a link of another file answers like an unknown id`() async throws {
        try await withTokenServer { server in
            let mine = try await server.storeFile([1, 2, 3])
            let other = try await server.storeFile([4, 5, 6])
            let text = try linkText(try await server.makeGetLink(mine).url)
            for path in ["/files/ID", "/files/ID/meta", "/files/ID/chunks", "/tus/ID"] {
                var answers: [HTTPAnswer] = []
                for id in [other.text, Self.unknown] {
                    let target = path.replacing("ID", with: id) + "?link=\(text)"
                    answers.append(try await server.get(target))
                }
                #expect(answers[0].status == 404, "\(path)")
                #expect(answers[0].comparable == answers[1].comparable, "\(path)")
            }
            #expect(try await server.get("/files/\(mine)?link=\(text)").body == [1, 2, 3])
        }
    }

    @Test func `a session link reads the chunks of its own file, and no bytes`() async throws {
        try await withTokenServer { server in
            let other = try await server.storeFile([4, 5, 6])
            let link = try await server.makePutLink()
            let answer = try await server.ask(
                .createSession(
                    CreateSessionRequest(fileName: "a", fileSize: 0), [],
                    at: try target(link.sessionsUrl)))
            let session = try answer.decoded(CreateSessionResponse.self)
            let text = try linkText(session.uploadLink)
            let finalized = try await server.ask(
                HTTPRequestBytes(
                    "POST", "/uploads/sessions/\(session.sessionId)/finalize?link=\(text)"))
            let file = try finalized.decoded(FinalizeResponse.self).remoteFileId
            #expect(try await server.get("/files/\(file)/chunks?link=\(text)").status == 200)
            #expect(try await server.get("/files/\(file)?link=\(text)").status == 403)
            let foreign = try await server.get("/files/\(other)/chunks?link=\(text)")
            let absent = try await server.get("/files/\(Self.unknown)/chunks?link=\(text)")
            #expect(foreign.status == 404)
            #expect(foreign.comparable == absent.comparable)
        }
    }

    @Test func `another method by X-HTTP-Method-Override is no way round`() async throws {
        try await withTokenServer { server in
            let id = try await server.storeFile([1, 2, 3])
            let text = try linkText(try await server.makeGetLink(id).url)
            for method in ["PATCH", "DELETE", "HEAD"] {
                let answer = try await server.ask(
                    .tus(
                        "POST", "/tus/\(Self.unknown)?link=\(text)",
                        [("X-HTTP-Method-Override", method)]))
                #expect(answer.status == 403, "\(method)")
            }
            let session = try await server.createSession(byteCount: 10)
            let own = try linkText(try await server.makeSessionLink(session).url)
            let read = try await server.ask(
                .tus("POST", "/tus/\(session)?link=\(own)", [("X-HTTP-Method-Override", "GET")]))
            #expect(read.status == 403)
        }
    }
}
