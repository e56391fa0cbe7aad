import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// Links of a service as arguments: sent as credentials, and never printed.
@Suite(.timeLimit(.minutes(3)))
struct LinkArgumentTests {
    private static let text = "kl1.k1.payload-of-hush.code"
    private static let token = "token-of-hush"

    private let fixture: CommandEnvironment
    private let server: TokenServer

    init() throws {
        fixture = try CommandEnvironment()
        server = try TokenServer(status: "403 Forbidden")
    }

    private var putLink: String { "\(server.url)/files?link=\(Self.text)" }
    private var getLink: String {
        "\(server.url)/files/\(String(repeating: "0", count: 32))?link=\(Self.text)"
    }

    /// Runs a line of a shell in which `$LINK` is the link, and expects that it is refused.
    @discardableResult
    private func refused(_ line: String, _ link: String) async throws -> Finished {
        let finished = try await fixture.shell(
            line, environment: ["LINK": link, "KEDGE_TOKEN": Self.token])
        #expect(finished.termination == .exited(ExitStatus.denied), "\(finished.errors)")
        expectSilent(finished)
        return finished
    }

    private func expectSilent(
        _ finished: Finished, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let text = finished.output + finished.errors
        #expect(!text.contains("hush"), "\(text)", sourceLocation: sourceLocation)
    }

    private func writeLink(_ link: String) throws -> String {
        let path = fixture.path("link.txt")
        try Data("\(link)\n".utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    @Test(arguments: [[], ["--json"], ["-vv"], ["--json", "-v"]])
    func `a link is the only credential, and no output has it`(flags: [String]) async throws {
        let sample = try fixture.sample(mebibytes: 1)
        let log = fixture.path("log")
        let more = (flags + ["--log-file", log]).joined(separator: " ")
        for flags in [flags.joined(separator: " "), more] {
            try await refused("\"$K\" upload '\(sample.path)' --server \"$LINK\" \(flags)", putLink)
            try await refused(
                "\"$K\" download \"$LINK\" -o '\(fixture.path("copy"))' \(flags)", getLink)
        }
        #expect(!server.credentials.isEmpty)
        #expect(server.credentials.allSatisfy { $0 == "Bearer \(Self.text)" })
        let logged = try String(contentsOfFile: log, encoding: .utf8)
        #expect(logged.contains("/uploads/sessions") && !logged.contains("hush"))
        let transfers = try await fixture.transfers()
        #expect(transfers.count == 2)
        var outputs = [
            try await fixture.run(["transfers", "list"]),
            try await fixture.run(["transfers", "list", "--long"]),
            try await fixture.run(["transfers", "list", "--json"]),
        ]
        for id in transfers.compactMap(\.transferId) {
            outputs.append(try await fixture.run(["transfers", "show", id]))
            outputs.append(try await fixture.run(["transfers", "show", id, "--json"]))
            outputs.append(try await fixture.run(["transfers", "diagnose", id]))
        }
        for finished in outputs {
            #expect(finished.termination == .exited(0))
            expectSilent(finished)
        }
    }

    @Test func `a link may be in a file or on standard input`() async throws {
        let sample = try fixture.sample(mebibytes: 1)
        let copy = fixture.path("copy")
        let put = try writeLink(putLink)
        try await refused("\"$K\" upload '\(sample.path)' --server '@\(put)'", putLink)
        try await refused(
            "printf '%s\\n' \"$LINK\" | \"$K\" upload '\(sample.path)' --server -", putLink)
        let get = try writeLink(getLink)
        try await refused("\"$K\" download '@\(get)' -o '\(copy)'", getLink)
        try await refused("printf '%s\\n' \"$LINK\" | \"$K\" download - -o '\(copy)'", getLink)
        #expect(server.credentials.allSatisfy { $0 == "Bearer \(Self.text)" })
        #expect(server.credentials.count >= 4)
    }

    @Test func `a stream is uploaded by link`() async throws {
        try await refused(
            "echo text | \"$K\" upload - --name text.txt --server \"$LINK\"", putLink)
        #expect(server.credentials.allSatisfy { $0 == "Bearer \(Self.text)" })
        let both = try await fixture.shell("\"$K\" upload - --name text.txt --server - < /dev/null")
        #expect(both.termination == .exited(ExitStatus.usage))
    }

    @Test func `a file or a line without a link is an error`() async throws {
        let sample = try fixture.sample(mebibytes: 1)
        let path = try writeLink("no link")
        for line in ["--server '@\(path)'", "--server - < /dev/null"] {
            let finished = try await fixture.shell("\"$K\" upload '\(sample.path)' \(line)")
            #expect(finished.termination == .exited(ExitStatus.usage), "\(finished.errors)")
        }
        #expect(server.credentials == [])
    }

    @Test func `a cancel removes the link from the records`() async throws {
        let sample = try fixture.sample(mebibytes: 1)
        try await refused("\"$K\" upload '\(sample.path)' --server \"$LINK\"", putLink)
        #expect(try kept())
        let id = try #require(try await fixture.transfers().first?.transferId)
        #expect(try await fixture.run(["transfers", "cancel", id]).termination == .exited(0))
        #expect(try !kept())
    }

    /// Whether a file of the client has the link.
    private func kept() throws -> Bool {
        let directory = fixture.path("state")
        return try FileManager.default.subpathsOfDirectory(atPath: directory).contains { name in
            let bytes = FileManager.default.contents(atPath: "\(directory)/\(name)") ?? Data()
            return bytes.range(of: Data(Self.text.utf8)) != nil
        }
    }
}
