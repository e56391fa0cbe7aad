import Foundation
import KedgeTesting
import Testing

/// The log of `kedge serve`, as its operator reads it.
@Suite(.timeLimit(.minutes(2)))
struct ServerLogTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private func causes(_ server: Server) -> [String] {
        server.process.errors.split(separator: "\n").compactMap { line in
            // The last line may be incomplete.
            let facts = try? JSONDecoder().decode([String: String].self, from: Data(line.utf8))
            return facts?["error.cause"]
        }
    }

    @Test func `causes in the log are words, not names of types`() async throws {
        let server = try await fixture.serve()
        let bodies = ["{\"a\": 1}", "{\"a\": 1", "[]", "{\"fileName\": 1}", "{\"fileName\": null}"]
        for body in bodies {
            _ = try fixture.post(body, to: "/uploads/sessions", at: server)
        }
        let broken = try LoopbackConnection(port: server.port)
        broken.send(
            "POST /files HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
                + "Content-Disposition: attachment; filename=a\r\nContent-Length: 100000\r\n"
                + "Expect: 100-continue\r\n\r\n")
        // The server waits for the body now.
        let head = try #require(broken.readHead())
        #expect(head.status == 100)
        broken.close(resetting: true)
        let malformed = try LoopbackConnection(port: server.port)
        malformed.send("BLAH\r\n\r\n")
        malformed.waitUntilPeerCloses()
        malformed.close()
        let found: [String] = try await eventually("all causes are logged") {
            let found = causes(server)
            return found.count == bodies.count + 2 ? found : nil
        }
        for cause in found {
            for name in ["Error", "Coding", "Swift", "NIO", "(", "Int"] {
                #expect(!cause.contains(name), "\(cause)")
            }
        }
        #expect(found.contains { $0.hasPrefix("Connection reset by peer") }, "\(found)")
        #expect(found.contains("the member fileName is missing"), "\(found)")
    }
}
