import Foundation
import KedgeEngine
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Every protocol over TLS, with curl as the client.
@Suite(.timeLimit(.minutes(2))) struct TLSTransferTests {
    private static let content = sampleBytes(5 << 20 + 7)

    private func source(_ content: [UInt8], _ secure: SecureServer) throws -> String {
        try secure.server.fixture.directory.write(content, to: "source")
    }

    @Test func `a file is downloaded with equal bytes, whole and by range`() async throws {
        try await withSecureServer { secure in
            let path = try await secure.upload(try source(Self.content, secure))
            // Compared apart: a failure would print megabytes.
            let isWhole = try await secure.download(path) == Self.content
            #expect(isWhole)
            let part = try await secure.download(path, ["--range", "1000000-3999999"])
            let isPart = part == Array(Self.content[1_000_000..<4_000_000])
            #expect(isPart)
            let parts = try await secure.curl(["--range", "0-9,100-109", "\(secure.url)\(path)"])
            #expect(parts.output.contains("Content-Range: bytes 100-109/\(Self.content.count)"))
        }
    }

    @Test func `a body is sent after 100 Continue, and a second request uses the connection`()
        async throws
    {
        try await withSecureServer { secure in
            let body = try source(Self.content, secure)
            let output = try await secure.ask([
                "--verbose", "-H", "Expect: 100-continue", "--data-binary", "@\(body)",
                "\(secure.url)/files", "--next", "--silent", "--verbose", "--cacert",
                secure.authority.certificate, "\(secure.url)/healthz",
            ])
            #expect(output.contains("HTTP/1.1 100 Continue"))
            #expect(output.contains("HTTP/1.1 201 Created"))
            #expect(output.contains("Re-using existing connection"))
            #expect(output.contains("HTTP/1.1 200 OK"))
        }
    }

    @Test func `a tus upload gets an https address, and continues there`() async throws {
        try await withSecureServer { secure in
            let tus = ["-H", "Tus-Resumable: 1.0.0", "--include"]
            let created = try await secure.ask(
                tus + ["-X", "POST", "-H", "Upload-Length: 3000000", "\(secure.url)/tus/"])
            let address = try #require(Self.location(in: created))
            #expect(address.hasPrefix("\(secure.url)/tus/"))
            for (start, end) in [(0, 1_000_000), (1_000_000, 3_000_000)] {
                let piece = try source(Array(Self.content[start..<end]), secure)
                try await secure.ask(
                    tus + [
                        "-X", "PATCH", "-H", "Upload-Offset: \(start)", "-H",
                        "Content-Type: application/offset+octet-stream", "--data-binary",
                        "@\(piece)", address,
                    ])
            }
            let head = try await secure.ask(tus + ["--head", address])
            #expect(head.lowercased().contains("upload-offset: 3000000"))
        }
    }

    @Test func `an IETF upload gets a 104 answer, and continues after its first part`()
        async throws
    {
        try await withSecureServer { secure in
            let version = ["-H", "Upload-Draft-Interop-Version: 6", "--include"]
            let first = try source(Array(Self.content[..<1_000_000]), secure)
            let created = try await secure.ask(
                version + [
                    "-H", "Upload-Complete: ?0", "--data-binary", "@\(first)",
                    "\(secure.url)/files",
                ])
            #expect(created.contains("HTTP/1.1 104"))
            let address = try #require(Self.location(in: created))
            let url = address.hasPrefix("/") ? secure.url + address : address
            let rest = try source(Array(Self.content[1_000_000...]), secure)
            let finished = try await secure.ask(
                version + [
                    "-X", "PATCH", "-H", "Upload-Complete: ?1", "-H", "Upload-Offset: 1000000",
                    "-H", "Content-Type: application/partial-upload", "--data-binary",
                    "@\(rest)", url,
                ])
            #expect(finished.contains("\"size\":\(Self.content.count)"))
        }
    }

    /// The answer is early, and the server reads on, so that no reset destroys it.
    @Test func `a body that is too large is refused with an answer that the client reads`()
        async throws
    {
        try await withSecureServer {
            $0.engine.maxFileSize = 1 << 20
        } _: { secure in
            let body = try source(Self.content, secure)
            let finished = try await secure.curl([
                "-H", "Expect:", "--data-binary", "@\(body)", "--write-out", "\n%{http_code}",
                "\(secure.url)/files",
            ])
            #expect(finished.output.hasSuffix("\n413"), "\(finished.output)")
        }
    }

    @Test func `a reader that is too slow is cut while connections are scarce`() async throws {
        try await withSecureServer {
            $0.maxConnections = 4
            $0.answerWindow = .seconds(1)
        } _: { secure in
            let path = try await secure.upload(
                try source(sampleBytes(24 << 20), secure))
            let copy = secure.path("copy")
            let slow = try await secure.curl([
                "--limit-rate", "1k", "--output", copy, "\(secure.url)\(path)",
            ])
            #expect(slow.status != 0)
            #expect(secure.server.fixture.log.lines.contains { $0.metadata["readers"] != nil })
        }
    }

    @Test func `a page of the server's own https origin is answered, and one of http is not`()
        async throws
    {
        try await withSecureServer { secure in
            for (scheme, status) in [("https", 200), ("http", 400)] {
                let answer = try await secure.curl([
                    "-H", "Origin: \(scheme)://localhost:\(secure.port)", "--output", "/dev/null",
                    "--write-out", "%{http_code}", "\(secure.url)/files",
                ])
                #expect(answer.output == "\(status)")
            }
        }
    }

    private static func location(in answer: String) -> String? {
        for line in answer.split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: ":", maxSplits: 1)
            if parts.count == 2, parts[0].lowercased() == "location" {
                return parts[1].trimmingCharacters(in: .whitespaces)
            }
        }
        return nil
    }
}
