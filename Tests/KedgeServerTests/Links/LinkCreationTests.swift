import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// `POST /links`.
@Suite(.timeLimit(.minutes(1))) struct LinkCreationTests {
    private static func ask(
        _ members: String, _ token: APIToken, on server: RunningServer
    ) async throws -> HTTPAnswer {
        try await server.ask(.json("POST", "/links", "{\(members)}", token.fields))
    }

    @Test func `a link has addresses for the clients of its operation`() async throws {
        try await withTokenServer { server in
            let origin = "http://localhost"
            let put = try await server.makePutLink()
            #expect(put.url.hasPrefix("\(origin)/files?link=kl1."))
            #expect(put.tusUrl?.hasPrefix("\(origin)/tus/?link=kl1.") == true)
            #expect(put.sessionsUrl?.hasPrefix("\(origin)/uploads/sessions?link=kl1.") == true)
            let id = try await server.createSession(byteCount: 1)
            let session = try await server.makeSessionLink(id)
            #expect(session.url.hasPrefix("\(origin)/uploads/sessions/\(id)?link=kl1."))
            #expect(session.tusUrl?.hasPrefix("\(origin)/tus/\(id)?link=kl1.") == true)
            #expect(
                session.resumableUrl?.hasPrefix("\(origin)/uploads/resumable/\(id)?link=kl1.")
                    == true)
            let file = try await server.storeFile([1])
            let get = try await server.makeGetLink(file)
            #expect(get.url.hasPrefix("\(origin)/files/\(file)?link=kl1."))
            #expect(get.tusUrl == nil && get.sessionsUrl == nil && get.resumableUrl == nil)
            #expect(
                get.expiresAt == server.fixture.clock.now().advanced(by: .seconds(3600)))
        }
    }

    @Test func `a link gives away no scope that its creator lacks`() async throws {
        try await withTokenServer { server in
            let file = try await server.storeFile([1])
            let session = try await server.createSession(byteCount: 1)
            let put = #""op":"put","expiresInSeconds":60"#
            let continuing = #""op":"session","expiresInSeconds":60,"sessionId":"\#(session)""#
            let get = #""op":"get","expiresInSeconds":60,"fileId":"\#(file)""#
            for (scopes, permitted) in [
                ([.linksCreate], []), ([.linksCreate, .uploadsWrite], [put, continuing]),
                ([.linksCreate, .filesRead], [get]), ([.uploadsWrite, .filesRead], []),
                ([.linksCreate, .uploadsRead, .filesList], []),
            ] as [(Set<Scope>, [String])] {
                let token = try await server.makeToken(scopes)
                for members in [put, continuing, get] {
                    let answer = try await Self.ask(members, token, on: server)
                    let expected = permitted.contains(members) ? 201 : 403
                    #expect(answer.status == expected, "\(scopes) \(members)")
                }
            }
        }
    }

    @Test func `another owner's session and file answer like unknown ones`() async throws {
        try await withTokenServer { server in
            let bob = try await server.makeToken(owner: "bob")
            let unknown = String(repeating: "0", count: 32)
            let file = try await server.storeFile([1])
            let session = try await server.createSession(byteCount: 1)
            for (op, member, id) in [
                ("get", "fileId", file.text), ("session", "sessionId", session.text),
            ] {
                var answers: [HTTPAnswer] = []
                for id in [id, unknown] {
                    answers.append(
                        try await Self.ask(
                            "\"op\":\"\(op)\",\"expiresInSeconds\":60,\"\(member)\":\"\(id)\"",
                            bob, on: server))
                }
                #expect(answers[0].status == 404)
                #expect(answers[0].comparable == answers[1].comparable)
            }
        }
    }

    @Test(arguments: [
        "", #""op":"put""#, #""expiresInSeconds":60"#, #""op":"record","expiresInSeconds":60"#,
        #""op":"put","expiresInSeconds":0"#, #""op":"put","expiresInSeconds":-1"#,
        #""op":"put","expiresInSeconds":2592001"#, #""op":"put","expiresInSeconds":"60""#,
        #""op":"get","expiresInSeconds":60"#, #""op":"session","expiresInSeconds":60"#,
        #""op":"get","expiresInSeconds":60,"fileId":"x""#,
    ])
    func `a request without the needed members is refused`(members: String) async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken()
            try expectProblem(try await Self.ask(members, token, on: server), .badRequest)
        }
    }

    /// Limits that would not be kept, or could never be met.
    private static let wrongLimits = [
        #""maxFilesize":1"#, #""record":"a""#, #""sessionId":"00000000000000000000000000000000""#,
        #""disposition":"inline""#, #""maxFileSize":-1"#, #""minFileSize":-1"#, #""fileSize":-1"#,
        #""minFileSize":2,"maxFileSize":1"#, #""fileSize":3,"maxFileSize":2"#,
        #""fileSize":1,"minFileSize":2"#, #""uses":0"#, #""uses":1000001"#, #""uses":1.5"#,
        #""sessionLifetimeSeconds":0"#, #""sessionLifetimeSeconds":2592001"#,
        #""mimeTypes":["video"]"#, #""mimeTypes":["video/"]"#, #""mimeTypes":["a/b/c"]"#,
        #""mimeTypes":["video/mp4; x=y"]"#, #""mimeTypes":"video/mp4""#,
        #""fileExtensions":[""]"#, #""fileExtensions":["."]"#, #""fileExtensions":["a/b"]"#,
        #""fileName":"a/b""#, #""fileName":"""#, #""fileHashSha256":"x""#,
        #""metadata":{"kedge.tus.metadata":"x"}"#, #""metadata":{"a":1}"#,
        #""origins":["app.example"]"#, #""origins":["*"]"#, #""origins":["https://a/b"]"#,
        #""networks":["localhost"]"#, #""networks":["10.0.0.0/33"]"#, #""networks":[""]"#,
        #""metadata":{"note":"\#(String(repeating: "x", count: 2100))"}"#,
    ]

    @Test(arguments: wrongLimits)
    func `limits that make no sense are refused`(limit: String) async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken()
            let answer = try await Self.ask(
                #""op":"put","expiresInSeconds":60,\#(limit)"#, token, on: server)
            try expectProblem(answer, .badRequest)
        }
    }

    @Test func `a setting limits the life of links`() async throws {
        try await withServer {
            $0.identityMode = .tokens
            $0.maxLinkLifetime = .seconds(60)
        } _: { server in
            let token = try await server.makeToken()
            for (seconds, status) in [(60, 201), (61, 400)] {
                let answer = try await Self.ask(
                    #""op":"put","expiresInSeconds":\#(seconds)"#, token, on: server)
                #expect(answer.status == status)
            }
        }
    }
}
