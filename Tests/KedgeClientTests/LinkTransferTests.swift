import Foundation
import HTTPTypes
import KedgeClient
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// Transfers by links of the service, in place of a token.
@Suite(.timeLimit(.minutes(1)))
struct LinkTransferTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(300_000)
    private static let putText = "kl1.k1.put-of-hush.code"
    private static let sessionText = "kl1.k1.session-of-hush.code"
    private static let getText = "kl1.k1.get-of-hush.code"
    private static let put = ServiceLink("\(FakeServer.base)/files?link=\(putText)")

    init() throws { fixture = try TransferEnvironment() }

    /// Lets the server give a link with each session, and admit every request with the right link
    /// only.
    private func serveLinks(creator: String = "Bearer \(putText)") {
        fixture.plan(
            .rewrite { reply in
                guard
                    var session = try? JSONDecoder().decode(
                        CreateSessionResponse.self, from: Data(reply.body))
                else { return }
                session.uploadLink =
                    "\(FakeServer.base)/uploads/sessions/\(session.sessionId)"
                    + "?link=\(Self.sessionText)"
                reply = Reply(status: 201, json: session)
            }, count: 1000
        ) { $0.method == "POST" && $0.route == "/uploads/sessions" && $0.credential == creator }
        fixture.plan(.answer(Reply(problem: .linkInvalid)), count: 1000) {
            let isSession = $0.path.hasPrefix("/uploads/sessions/")
            return $0.credential != (isSession ? "Bearer \(Self.sessionText)" : creator)
        }
    }

    /// Refuses the credential from now on, before other faults.
    private func refuse(
        _ credential: String, _ code: ErrorCode, count: Int = 1000, at part: String = "/"
    ) {
        let fault = PlannedFault(
            matches: { $0.credential == "Bearer \(credential)" && $0.path.contains(part) },
            fault: .answer(Reply(problem: code)), remainingCount: count)
        fixture.server.state.withLock { $0.faults.insert(fault, at: 0) }
    }

    private func upload(
        _ client: TransferClient, _ link: ServiceLink? = put
    ) async throws -> TransferSnapshot {
        if fixture.read("source.bin") == nil { try fixture.write("source.bin", bytes) }
        var options = UploadOptions()
        options.link = link
        return try await client.run(
            try await client.enqueueUpload(path: fixture.path("source.bin"), options: options))
    }

    private func client() async throws -> TransferClient {
        try await fixture.client { $0.connections = 1 }
    }

    /// Everything that the client keeps, as one text.
    private func kept() throws -> String {
        let directory = fixture.path("state")
        let names = try FileManager.default.subpathsOfDirectory(atPath: directory)
        let files = names.compactMap { FileManager.default.contents(atPath: "\(directory)/\($0)") }
        return files.map { String(decoding: $0, as: Unicode.ASCII.self) }.joined()
    }

    private var credentials: Set<String> {
        fixture.server.state.withLock { Set($0.seen.map(\.credential)) }
    }

    @Test func `an upload by link sends the link of its session, and never the token`()
        async throws
    {
        serveLinks()
        let client = try await client()
        let done = try await upload(client)
        fixture.expectUploaded(done, bytes)
        #expect(credentials == ["Bearer \(Self.putText)", "Bearer \(Self.sessionText)"])
        // In no address, where servers would log it.
        #expect(
            fixture.server.state.withLock { $0.seen.filter { $0.url.contains("link=") }.count } == 0
        )
        let diagnosis = try await client.diagnose(done.id)
        let shown = "\(done) \(diagnosis)"
        #expect(!shown.contains("hush"))
        try await client.close()
        #expect(try !kept().contains("hush"))
    }

    @Test func `a later process continues with the link of the session`() async throws {
        serveLinks()
        refuse(Self.sessionText, .internalError, at: "/chunks/2")
        let first = try await fixture.client {
            $0.connections = 1
            $0.retry.maxRetries = 0
        }
        let stopped = try await upload(first)
        #expect(stopped.state == .failed)
        try await first.close()
        #expect(try kept().contains(Self.sessionText))
        fixture.server.state.withLock { _ = $0.faults.removeFirst() }
        let creationCount = fixture.seen("POST", "/uploads/sessions").count
        let second = try await fixture.client()
        try await second.retry(stopped.id)
        fixture.expectUploaded(try await second.run(stopped.id), bytes)
        #expect(fixture.seen("PUT", "/chunks/0").count == 1)
        #expect(fixture.seen("POST", "/uploads/sessions").count == creationCount + 1, "finalize")
    }

    @Test(arguments: [ErrorCode.linkInvalid, .linkExpired, .forbidden, .unauthenticated])
    func `a refused link fails in words and keeps progress, and another one goes on`(
        code: ErrorCode
    ) async throws {
        serveLinks()
        refuse(Self.sessionText, code, at: "/chunks/2")
        let client = try await client()
        let failed = try await upload(client)
        #expect(failed.state == .failed)
        #expect(failed.errorCode == code)
        #expect(code.facts.exitStatus == ExitStatus.denied)
        #expect(failed.bytesTransferred == 2 * 64 << 10)
        #expect(!failed.message.contains("hush") && !failed.message.contains("login"))
        // Tried again with one link, the session stays.
        #expect(try await upload(client).errorCode == code)
        #expect(fixture.sessions.count == 1)
        // Another link begins another session.
        fixture.server.state.withLock { $0.faults = [] }
        serveLinks(creator: "Bearer kl1.k1.other.code")
        let other = ServiceLink("\(FakeServer.base)/tus/?link=kl1.k1.other.code")
        let done = try await upload(client, other)
        #expect(done.id == failed.id)
        #expect(done.state == .completed)
        fixture.expectStored(done, bytes)
        #expect(fixture.sessions.count == 2)
    }

    @Test func `a link of a session continues it, compared with what the server has`()
        async throws
    {
        serveLinks()
        refuse(Self.sessionText, .linkExpired, at: "/chunks/2")
        let client = try await client()
        let failed = try await upload(client)
        let session = try #require(failed.sessionID)
        fixture.server.state.withLock { $0.faults = [] }
        let link = ServiceLink(
            "\(FakeServer.base)/uploads/sessions/\(session)?link=kl1.k1.new.code")
        let done = try await upload(client, link)
        #expect(done.id == failed.id)
        fixture.expectUploaded(done, bytes)
        #expect(fixture.seen("PUT", "/chunks/0").count == 1)
        #expect(credentials.contains("Bearer kl1.k1.new.code"))
        #expect(!credentials.contains("Bearer secret"))
    }

    @Test func `the link of a session outlives the token that began it`() async throws {
        serveLinks(creator: "Bearer secret")
        let client = try await client()
        fixture.expectUploaded(try await upload(client, nil), bytes)
        let chunks = fixture.seen("PUT", "/chunks")
        #expect(Set(chunks.map(\.credential)) == ["Bearer \(Self.sessionText)"])
    }

    @Test func `the token goes on where the link of the session is refused`() async throws {
        serveLinks(creator: "Bearer secret")
        refuse(Self.sessionText, .linkExpired, at: "/chunks/2")
        fixture.server.state.withLock { state in
            // The token is good for everything.
            state.faults.removeAll { fault in
                fault.remainingCount == 1000 && fault.matches(Self.chunk(by: "Bearer secret"))
            }
        }
        let client = try await client()
        fixture.expectUploaded(try await upload(client, nil), bytes)
        #expect(fixture.seen("PUT", "/chunks/2").last?.credential == "Bearer secret")
        #expect(fixture.sessions.count == 1)
    }

    private static func chunk(by credential: String) -> FakeServer.Seen {
        FakeServer.Seen(
            method: "PUT", path: "/uploads/sessions/a/chunks/2",
            fields: [.authorization: credential])
    }

    @Test func `a canceled upload forgets its link and is not tried again without one`()
        async throws
    {
        serveLinks()
        refuse(Self.sessionText, .linkExpired, count: 1, at: "/chunks/2")
        let client = try await client()
        let failed = try await upload(client)
        try await client.cancel(failed.id)
        #expect(fixture.sessions.map(\.state) == [.canceled])
        await #expect(throws: TransferError(.illegalTransition, operation: "")) {
            try await client.retry(failed.id)
        }
        try await client.close()
        #expect(try !kept().contains("hush"))
    }

    @Test func `an upload that a token began is not continued by a link`() async throws {
        fixture.plan(.answer(Reply(problem: .forbidden)), count: 1) {
            $0.path.contains("/chunks/2")
        }
        let client = try await client()
        #expect(try await upload(client, nil).state == .failed)
        await #expect(throws: TransferError(.usage, operation: "")) { try await upload(client) }
    }

    @Test func `a link for something else is refused before anything is sent`() async throws {
        let client = try await client()
        let id = FileID.random()
        let url = "\(FakeServer.base)/files/\(id)?link=\(Self.getText)"
        await #expect(throws: TransferError(.usage, operation: "")) {
            try await upload(client, ServiceLink(url))
        }
        var options = UploadOptions(sessionID: SessionID.random())
        options.link = Self.put
        await #expect(throws: TransferError(.usage, operation: "")) {
            try await client.enqueueUpload(path: fixture.path("source.bin"), options: options)
        }
        #expect(fixture.seen("POST", "/").isEmpty)
    }

    @Test func `a download by link has the digests and the name of the file`() async throws {
        let file = fixture.addFile(bytes, name: "video.mp4")
        let client = try await client()
        let url = "\(FakeServer.base)/files/\(file)?link=\(Self.getText)"
        let id = try await client.enqueueDownload(.url(url), to: fixture.directory)
        let done = try await client.run(id)
        #expect(done.state == .completed)
        #expect(done.verification == .sha256)
        #expect(fixture.read("video.mp4") == bytes)
        #expect(credentials == ["Bearer \(Self.getText)"])
        #expect(fixture.seen("GET", "/chunks").count == 1)
        try await client.close()
        #expect(try !kept().contains("hush"))
    }

    @Test func `a download goes on with another link to the same file`() async throws {
        let file = fixture.addFile(bytes)
        refuse(Self.getText, .linkExpired)
        fixture.server.state.withLock { state in
            let first = state.faults[0]
            state.faults[0] = PlannedFault(
                matches: {
                    first.matches($0) && $0.fields[.range]?.hasPrefix("bytes=131072") == true
                },
                fault: first.fault, remainingCount: 1000)
        }
        let client = try await client()
        func download(_ text: String, of file: FileID) async throws -> TransferSnapshot {
            let url = "\(FakeServer.base)/files/\(file)?link=\(text)"
            return try await client.run(
                try await client.enqueueDownload(.url(url), to: fixture.path("copy")))
        }
        let failed = try await download(Self.getText, of: file)
        #expect(failed.state == .failed)
        #expect(failed.errorCode == .linkExpired)
        #expect(failed.bytesTransferred == 2 * 64 << 10)
        // The destination is that of this file.
        await #expect(throws: TransferError(.destinationExists, operation: "")) {
            _ = try await download("kl1.k1.new.code", of: FileID.random())
        }
        let done = try await download("kl1.k1.new.code", of: file)
        #expect(done.id == failed.id)
        #expect(done.state == .completed)
        #expect(fixture.read("copy") == bytes)
        let ranges = fixture.seen("GET", "/files/").compactMap { $0.fields[.range] }
        #expect(ranges.filter { $0.hasPrefix("bytes=0-") }.count == 1)
    }

    @Test func `a stream by link is read with its digests`() async throws {
        let file = fixture.addFile(bytes)
        let written = Mutex<[UInt8]>([])
        let client = try await client()
        _ = try await client.downloadStream(
            .url("\(FakeServer.base)/files/\(file)?link=\(Self.getText)"),
            write: { piece in written.withLock { $0 += Array(piece) } })
        #expect(written.withLock { $0 } == bytes)
        #expect(credentials == ["Bearer \(Self.getText)"])
    }

    @Test func `only this user can read the records that have links`() async throws {
        serveLinks()
        refuse(Self.sessionText, .linkExpired, at: "/chunks/2")
        let client = try await client()
        _ = try await upload(client)
        let directory = fixture.path("state")
        let modes = try ["", "/transfers.sqlite", "/transfers.sqlite-wal"].map { name in
            let facts = try FileManager.default.attributesOfItem(atPath: directory + name)
            return (facts[.posixPermissions] as? Int ?? 0) & 0o077
        }
        #expect(modes == [0, 0, 0])
    }
}

extension FakeServer.Seen {
    /// The value of `Authorization`; the empty text without one.
    fileprivate var credential: String { fields[.authorization] ?? "" }
}
