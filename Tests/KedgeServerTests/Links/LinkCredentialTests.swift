import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting
import Logging
import Testing

/// How a request carries its link, and when the link is refused.
@Suite(.timeLimit(.minutes(1))) struct LinkCredentialTests {
    @Test func `a link in the query takes precedence over Authorization`() async throws {
        try await withTokenServer { server in
            let file = try await server.storeFile([1, 2, 3])
            let path = try target(try await server.makeGetLink(file).url)
            for value in ["Bearer x", "Bearer eyJhbGciOiJub25lIn0.e30.", "Basic eDp5"] {
                let answer = try await server.get(path, [("Authorization", value)])
                #expect(answer.status == 200, "\(value)")
            }
            let token = try await server.makeToken()
            let twice = try await server.get(path, token.fields + token.fields)
            #expect(twice.status == 200)
        }
    }

    @Test func `a link that is not valid is refused, whatever comes with it`() async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken()
            let file = try await server.storeFile([1, 2, 3])
            let text = try linkText(try await server.makeGetLink(file).url)
            for wrong in ["", "x", "kl1.", String(text.dropLast()), text.uppercased(), "\(text)x"] {
                let answer = try await server.get("/files/\(file)?link=\(wrong)", token.fields)
                try expectProblem(answer, .linkInvalid)
                #expect(!String(decoding: answer.body, as: UTF8.self).contains("kl1"))
            }
            let bearer = try await server.get(
                "/files/\(file)", [("Authorization", "Bearer \(text.dropLast())")])
            try expectProblem(bearer, .linkInvalid)
        }
    }

    @Test func `more than one link is refused`() async throws {
        try await withTokenServer { server in
            let file = try await server.storeFile([1, 2, 3])
            let path = try target(try await server.makeGetLink(file).url)
            let text = try linkText(path)
            try expectProblem(try await server.get("\(path)&link=\(text)"), .badRequest)
            try expectProblem(try await server.get("\(path)&link="), .badRequest)
            #expect(try await server.get("\(path)&other=x").status == 200)
        }
    }

    @Test func `a link ends at its time`() async throws {
        try await withTokenServer { server in
            let file = try await server.storeFile([1, 2, 3])
            let link = try await server.makeGetLink(file)
            let path = try target(link.url)
            let left = link.expiresAt.duration(since: server.fixture.clock.now())
            server.fixture.clock.advance(by: left - .milliseconds(1))
            #expect(try await server.get(path).status == 200)
            server.fixture.clock.advance(by: .milliseconds(1))
            try expectProblem(try await server.get(path), .linkExpired)
        }
    }

    @Test func `a link that ends while a body arrives does not cut it off`() async throws {
        try await withTokenServer { server in
            let id = try await server.createSession(byteCount: 10)
            let link = try await server.makeSessionLink(id)
            let content = sampleBytes(10)
            let upload = Upload(content: content, chunkSize: 10, id: id)
            var request = upload.put(0)
            request.target += "?link=\(try linkText(link.url))"
            let connection = try await server.hold(request)
            server.fixture.clock.advance(by: .seconds(3600))
            try await connection.send(content)
            #expect(try await connection.answer(to: "PUT").status == 201)
            try expectProblem(try await server.ask(request), .linkExpired)
        }
    }

    @Test(
        arguments: [
            (["127.0.0.1"], 200), (["192.0.2.0/24", "127.0.0.0/8"], 200), (["192.0.2.0/24"], 403),
            (["::1"], 403),
        ] as [([String], Int)])
    func `a link may be for some networks`(networks: [String], status: Int) async throws {
        try await withTokenServer { server in
            let file = try await server.storeFile([1, 2, 3])
            let list = networks.map { "\"\($0)\"" }.joined(separator: ",")
            let link = try await server.makeGetLink(file, "\"networks\":[\(list)]")
            #expect(try await server.get(try target(link.url)).status == status)
        }
    }

    @Test(arguments: [
        #"{"op":"put","networks":[],"expiresInSeconds":60}"#,
        #"{"op":"put","mimeTypes":[],"expiresInSeconds":60}"#,
        #"{"op":"put","fileExtensions":[],"expiresInSeconds":60}"#,
        #"{"op":"put","origins":[],"expiresInSeconds":60}"#,
    ])
    func `an empty list of limits is refused`(body: String) async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken([.linksCreate, .uploadsWrite])
            let answer = try await server.ask(.json("POST", "/links", body, token.fields))
            try expectProblem(answer, .badRequest)
        }
    }

    @Test func `the address behind a trusted proxy counts for networks`() async throws {
        let proxies = try #require(TrustedProxies(text: "127.0.0.1"))
        try await withServer {
            $0.identityMode = .tokens
            $0.trustedProxies = proxies
        } _: { server in
            let file = try await server.storeFile([1, 2, 3])
            let link = try await server.makeGetLink(
                file, #""networks":["2001:db8::5","192.0.2.0/24"]"#)
            let path = try target(link.url)
            for (address, status) in [
                ("192.0.2.9", 200), ("2001:db8::5", 200), ("2001:db8::6", 403), ("192.0.3.9", 403),
            ] {
                let answer = try await server.get(path, [("X-Forwarded-For", address)])
                #expect(answer.status == status, "\(address)")
            }
        }
    }

    @Test func `a revoked link is refused at once`() async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken()
            let file = try await server.storeFile([1, 2, 3])
            let link = try await server.makeGetLink(file)
            let path = try target(link.url)
            #expect(try await server.get(path).status == 200)
            for _ in 0..<2 {
                let answer = try await server.ask(
                    HTTPRequestBytes("DELETE", "/links/\(link.linkId)", token.fields))
                #expect(answer.status == 204)
            }
            try expectProblem(try await server.get(path), .linkInvalid)
        }
    }

    @Test func `another owner cannot revoke a link`() async throws {
        try await withTokenServer { server in
            let bob = try await server.makeToken(owner: "bob")
            let file = try await server.storeFile([1, 2, 3])
            let link = try await server.makeGetLink(file)
            for id in [link.linkId, String(repeating: "0", count: 32), "x"] {
                let answer = try await server.ask(
                    HTTPRequestBytes("DELETE", "/links/\(id)", bob.fields))
                try expectProblem(answer, .notFound)
            }
            #expect(try await server.get(try target(link.url)).status == 200)
        }
    }

    @Test func `the links of a revoked token are refused`() async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken()
            let answer = try await server.ask(
                .json("POST", "/links", #"{"op":"put","expiresInSeconds":60}"#, token.fields))
            let path = try target(try answer.decoded(CreateLinkResponse.self).sessionsUrl)
            let isKnown = try await server.tokens.revokeToken(
                token.id, at: server.fixture.clock.now())
            #expect(isKnown)
            server.fixture.clock.advance(by: .seconds(10))
            let refused = try await server.ask(.json("POST", path, "{}"))
            try expectProblem(refused, .linkInvalid)
        }
    }

    @Test func `the text of a link is in no log and no answer to its use`() async throws {
        try await withTokenServer { server in
            let file = try await server.storeFile([1, 2, 3])
            let path = try target(try await server.makeGetLink(file).url)
            let text = try linkText(path)
            for target in [path, "\(path)&link=x", "/nothing?link=\(text)", "\(path)x"] {
                let answer = try await server.get(target)
                let fields = answer.fields.map(\.value).joined()
                #expect(!fields.contains(text))
                #expect(!String(decoding: answer.body, as: UTF8.self).contains(text))
            }
            let line = try await eventually("the request is logged") {
                server.fixture.log.lines.first { $0.metadata["principal"] == "link" }
            }
            #expect(line.metadata["link.id"] != nil)
            #expect(line.metadata["owner"] == "alice")
            let all = server.fixture.log.lines.map { "\($0.metadata)" }.joined()
            #expect(!all.contains(text.suffix(43)))
        }
    }

    @Test func `without identities links are ignored, and none can be made`() async throws {
        try await SharedServer.use { server in
            #expect(try await server.get("/files?link=x").status == 200)
            let answer = try await server.ask(
                .json("POST", "/links", #"{"op":"put","expiresInSeconds":60}"#))
            try expectProblem(answer, .forbidden)
            // A link must not open the service to pages of other origins.
            let page = try await server.get(
                "/files?link=x", [("Origin", "https://evil.example")])
            try expectProblem(page, .badRequest)
        }
    }
}
