import Foundation
import GRDB
import HTTPTypes
import KedgeClient
import KedgeHash
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// The password and the query of a download's URL are kept only while the download can continue.
@Suite(.timeLimit(.minutes(1)))
struct URLSecretTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(200_000)
    private let url = "http://user:hushword@kedge.test/plain/x?key=hushkey#hushmark"

    init() throws {
        fixture = try TransferEnvironment()
        let plain = FakeServer.Plain(bytes: bytes, etag: "\"x\"")
        fixture.server.state.withLock { $0.plain["x"] = plain }
    }

    /// Everything that the client keeps, as one text.
    private func kept() throws -> String {
        let directory = fixture.path("state")
        let names = try FileManager.default.subpathsOfDirectory(atPath: directory)
        let files = names.compactMap { FileManager.default.contents(atPath: "\(directory)/\($0)") }
        return files.map { String(decoding: $0, as: Unicode.ASCII.self) }.joined()
    }

    @Test func `the secrets of a URL are gone once the file is there`() async throws {
        let client = try await fixture.client()
        let id = try await client.enqueueDownload(.url(url), to: fixture.path("out.bin"))
        #expect(try kept().contains("hushkey"))
        #expect(try await client.run(id).state == .completed)
        // The request had the complete URL.
        #expect(fixture.seen("GET", "/plain/x").allSatisfy { $0.path.contains("?key=hushkey") })
        try await client.close()
        #expect(try !kept().contains("hush"))
        #expect(fixture.read("out.bin") == bytes)
    }

    @Test func `the secrets of a URL are there for a run that continues`() async throws {
        let gate = Gate()
        fixture.plan(.wait(gate)) { $0.method == "GET" }
        let first = try await fixture.client()
        let id = try await first.enqueueDownload(.url(url), to: fixture.path("out.bin"))
        let run = Task { try await first.run(id) }
        await gate.waitForArrival()
        run.cancel()
        _ = try await run.value
        try await first.close()
        let second = try await fixture.client()
        #expect(try await second.run(id).state == .completed)
        #expect(fixture.seen("GET", "/plain/x").allSatisfy { $0.path.contains("?key=hushkey") })
    }

    @Test func `the secrets of a URL are gone after a cancel, and a retry is refused`() async throws
    {
        let client = try await fixture.client()
        let id = try await client.enqueueDownload(.url(url), to: fixture.path("out.bin"))
        try await client.cancel(id)
        await #expect(throws: TransferError(.illegalTransition, operation: "")) {
            try await client.retry(id)
        }
        try await client.close()
        #expect(try !kept().contains("hush"))
    }

    @Test func `a canceled download of a plain URL can be tried again`() async throws {
        let client = try await fixture.client()
        let plain = RemoteReference.url("http://kedge.test/plain/x")
        let id = try await client.enqueueDownload(plain, to: fixture.path("out.bin"))
        try await client.cancel(id)
        try await client.retry(id)
        #expect(try await client.run(id).state == .completed)
    }

    @Test func `records of an older kedge lose the URL secrets of ended downloads`() async throws {
        let client = try await fixture.client()
        let id = try await client.enqueueDownload(.url(url), to: fixture.path("out.bin"))
        _ = try await client.run(id)
        try await client.close()
        let queue = try fixture.openRecords()
        try await queue.write { [url] database in
            try database.execute(
                sql: "UPDATE download_transfer SET remote_url = ?, is_url_redacted = 0",
                arguments: [url])
        }
        try queue.close()
        #expect(try kept().contains("hush"))
        try await fixture.client().close()
        #expect(try !kept().contains("hush"))
    }

    @Test(arguments: [
        ("http://a:b@h/p?q#f", "http://h/p"), ("http://h/p@q#f?g", "http://h/p@q"),
        ("http://h?a@b", "http://h"), ("http://a@\u{301}h/p?\u{301}x", "http://\u{301}h/p"),
    ])
    func `nothing but the secrets of a URL is removed`(url: String, expected: String) {
        #expect(URLText.withoutSecrets(url) == expected)
    }
}
