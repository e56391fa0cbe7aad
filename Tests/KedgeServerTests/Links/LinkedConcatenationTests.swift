import KedgeHash
import KedgeIdentity
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// `Upload-Concat` with addresses that have links, as tus-js-client sends it for `parallelUploads`.
@Suite(.timeLimit(.minutes(1))) struct LinkedConcatenationTests {
    /// Uploads a part, and returns its address as `Location` had it.
    private static func part(
        _ content: [UInt8], at endpoint: String, _ fields: [(String, String)] = [],
        on server: RunningServer
    ) async throws -> String {
        let length = ("Upload-Length", "\(content.count)")
        let created = try await server.ask(
            .tus("POST", endpoint, [length, ("Upload-Concat", "partial")] + fields))
        let location = try #require(created.field("Location"))
        let path = try #require(created.tusPath)
        #expect(try await server.ask(.tusPatch(path, at: 0, content)).status == 204)
        return location
    }

    @Test func `parts are joined by addresses with links, which nothing repeats`() async throws {
        try await withTokenServer { server in
            let endpoint = try target(try await server.makePutLink(#""uses":3"#).tusUrl)
            let parts = [
                try await Self.part([1, 2], at: endpoint, on: server),
                try await Self.part([3, 4], at: endpoint, on: server),
            ]
            let concat = ("Upload-Concat", "final;" + parts.joined(separator: " "))
            let final = try await server.ask(.tus("POST", endpoint, [concat]))
            #expect(final.status == 201)
            // The answer was lost.
            let again = try await server.ask(.tus("POST", endpoint, [concat]))
            #expect(again.status == 201)
            #expect(again.field("Location") == final.field("Location"))
            let head = try await server.tusHead(try #require(final.tusPath))
            let stored = try #require(head.field("Upload-Concat"))
            #expect(!stored.contains("link") && !stored.contains("?"))
            #expect(stored.split(separator: " ").count == 2)
            let file = try #require(final.field("Content-Location"))
            let token = try await server.makeToken()
            #expect(try await server.get(file, token.fields).body == [1, 2, 3, 4])
        }
    }

    @Test func `addresses with links and without name the same final upload`() async throws {
        try await withServer {
            $0.identityMode = .tokens
            $0.linkPlacement = .always
        } _: { server in
            let token = try await server.makeToken()
            let parts = [
                try await Self.part([1, 2], at: "/tus/", token.fields, on: server),
                try await Self.part([3, 4], at: "/tus/", token.fields, on: server),
            ]
            let bare = parts.map { String($0.prefix { $0 != "?" }) }
            var locations: [String?] = []
            for addresses in [parts, bare] {
                let final = try await server.ask(
                    .tus(
                        "POST", "/tus/",
                        [("Upload-Concat", "final;" + addresses.joined(separator: " "))]
                            + token.fields))
                #expect(final.status == 201)
                locations.append(final.field("Location"))
            }
            #expect(locations[0] == locations[1])
        }
    }

    @Test(arguments: ["partial", "final;/tus/00000000000000000000000000000000"])
    func `a one-use link refuses concatenation`(concat: String) async throws {
        try await withTokenServer { server in
            for limits in [[], [#""uses":5,"fileSize":4"#]] as [[String]] {
                let members = #""op":"put","expiresInSeconds":60"#
                let link = try await server.makeLink(
                    ([members] + limits).joined(separator: ","))
                let answer = try await server.ask(
                    .tus(
                        "POST", try target(link.tusUrl),
                        [("Upload-Concat", concat)]
                            + (concat == "partial" ? [("Upload-Length", "4")] : [])))
                let problem = try expectProblem(answer, .forbidden)
                #expect(problem.detail?.contains("parallelUploads") == true)
            }
        }
    }

    @Test func `a link joins no parts of which it has no links`() async throws {
        try await withTokenServer { server in
            let token = try await server.makeToken()
            let endpoint = try target(try await server.makePutLink(#""uses":5"#).tusUrl)
            let mine = try await Self.part([1, 2], at: endpoint, on: server)
            let created = try await server.ask(
                .tus(
                    "POST", "/tus/",
                    [("Upload-Length", "1"), ("Upload-Concat", "partial")] + token.fields))
            let other = try #require(created.tusPath)
            #expect(try await server.ask(.tusPatch(other, at: 0, [9], token.fields)).status == 204)
            let foreign = "\(other)?link=\(try linkText(mine))"
            for address in [other, foreign, "\(other)?link=", "\(other)?link=kl1.x.y.z"] {
                let answer = try await server.ask(
                    .tus("POST", endpoint, [("Upload-Concat", "final;\(mine) \(address)")]))
                try expectProblem(answer, .badRequest)
            }
        }
    }
}
