import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// `kedge upload FILE --session ID`: resuming without the records of the first client.
///
/// Serialized, because a server must save received bytes within the second that a test waits.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct GivenSessionTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    /// An upload that was killed, and whose records are gone.
    private struct Orphan {
        let source: SampleFile
        let server: Server
        let proxy: FaultyProxy
        let session: String
        let status: SessionStatus

        var command: [String] {
            ["upload", source.path, "--server", proxy.url, "--session", session, "--json"]
        }

        /// Methods of later requests that could change the session.
        func changes(since count: Int) -> [String] {
            server.requests.dropFirst(count).filter { $0.method != "GET" }.map(\.method)
        }
    }

    private func orphan() async throws -> Orphan {
        let source = try fixture.sample(mebibytes: 40, plus: 12_345)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 4 << 20))
        let client = try fixture.start(["upload", source.path, "--server", proxy.url])
        try await eventually("some chunks are there") { server.requests.created.count >= 2 }
        client.signal(SIGKILL)
        _ = try await client.wait()
        proxy.faults = Faults()
        try FileManager.default.removeItem(atPath: fixture.path("state"))
        let session = try #require(server.requests.sessionIDs.first)
        try await settle(proxy)
        return Orphan(
            source: source, server: server, proxy: proxy, session: session,
            status: try await fixture.session(session, at: server.url))
    }

    /// Waits until everything that a killed client sent has arrived or is lost: the server saves
    /// received bytes after their connections have ended.
    private func settle(_ proxy: FaultyProxy) async throws {
        try await eventually("all connections have ended") { proxy.counts.openCount == 0 }
        // The server saves received bytes after the end of a connection, and nothing shows when
        // that is done.
        try await Task.sleep(for: .seconds(1))
    }

    // R13: a client on another machine sends no confirmed bytes again.
    @Test func `an upload without records resumes a given session and sends nothing twice`()
        async throws
    {
        let orphan = try await orphan()
        let before = orphan.proxy.counts.upByteCount
        let finished = try await fixture.run(orphan.command)
        try finished.expectCompleted(orphan.source)
        let missing = orphan.source.byteCount - Int(orphan.status.receivedBytes)
        let sent = orphan.proxy.counts.upByteCount - before
        #expect(sent >= missing && sent < missing + 64 << 10, "\(sent) of \(missing)")
        #expect(orphan.server.requests.sessionIDs == [orphan.session])
        #expect(orphan.server.requests.created.filter { $0.value > 1 } == [:])
        try await fixture.expectServed(
            orphan.source, id: finished.result.remoteFileId, at: orphan.server.url)
        // A finished session gives its file, also to a client without records.
        try FileManager.default.removeItem(atPath: fixture.path("state"))
        let again = try await fixture.run(orphan.command)
        try again.expectCompleted(orphan.source)
        #expect(try again.result.remoteFileId == finished.result.remoteFileId)
    }

    // A session takes every protocol: bytes that came without digests are verified like all others.
    @Test func `an upload begun with tus resumes with the native protocol`() async throws {
        let source = try fixture.sample(mebibytes: 24, plus: 1)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 4 << 20))
        let client = try fixture.start([
            "upload", source.path, "--server", "\(proxy.url)/tus/", "--dialect", "tus",
        ])
        try await eventually("some bytes are there") { proxy.counts.upByteCount > 9 << 20 }
        client.signal(SIGKILL)
        _ = try await client.wait()
        try await settle(proxy)
        let id = try #require(server.requests.last { $0.method == "PATCH" }?.sessionID)
        let status = try await fixture.session(id, at: server.url)
        #expect(status.receivedBytes > 0)
        proxy.faults = Faults()
        let before = proxy.counts.upByteCount
        let finished = try await fixture.run([
            "upload", source.path, "--server", proxy.url, "--session", id, "--json",
        ])
        try finished.expectCompleted(source)
        let missing = source.byteCount - Int(status.receivedBytes)
        #expect(proxy.counts.upByteCount - before < missing + 64 << 10)
        try await fixture.expectServed(
            source, id: finished.result.remoteFileId, at: server.url)
    }

    // From then on, the record is like any other.
    @Test func `an upload that resumed a given session survives a kill`() async throws {
        let orphan = try await orphan()
        orphan.proxy.faults = Faults(bytesPerSecond: 4 << 20)
        let count = orphan.server.requests.created.count
        let client = try fixture.start(orphan.command)
        try await eventually("some chunks more are there") {
            orphan.server.requests.created.count >= count + 2
        }
        client.signal(SIGKILL)
        _ = try await client.wait()
        orphan.proxy.faults = Faults()
        try await fixture.run(orphan.command).expectCompleted(orphan.source)
        #expect(orphan.server.requests.sessionIDs == [orphan.session])
        #expect(orphan.server.requests.created.filter { $0.value > 1 } == [:])
    }

    @Test func `another file is refused for a given session, which stays unchanged`() async throws {
        let orphan = try await orphan()
        let count = orphan.server.requests.count
        _ = try fixture.sample(mebibytes: 40, plus: 12_345, seed: 8)
        let refused = try await fixture.run(orphan.command)
        #expect(refused.termination == .exited(ExitStatus.sourceChanged))
        #expect(try refused.result.errorCode == "SESSION_FILE_MISMATCH")
        #expect(orphan.changes(since: count) == [])
        let after = try await fixture.session(orphan.session, at: orphan.server.url)
        #expect(after == orphan.status)
        // The right file resumes with the same command.
        _ = try fixture.sample(mebibytes: 40, plus: 12_345)
        try await fixture.run(orphan.command).expectCompleted(orphan.source)
    }

    @Test func `an unknown given session is an error, and no session is created`() async throws {
        let source = try fixture.sample(mebibytes: 1)
        let server = try await fixture.serve()
        let finished = try await fixture.run([
            "upload", source.path, "--server", server.url, "--json", "--session",
            SessionID.random().text,
        ])
        #expect(finished.termination == .exited(ExitStatus.notFound))
        #expect(try finished.result.errorCode == "SESSION_NOT_FOUND")
        #expect(server.requests.allSatisfy { $0.method == "GET" })
    }

    @Test(arguments: [["one", "two"], ["one", "--dialect", "tus"]])
    func `a given session is for one file in the native protocol`(arguments: [String]) async throws
    {
        let finished = try await fixture.run(
            ["upload"] + arguments + [
                "--server", "http://127.0.0.1:1", "--session", SessionID.random().text,
            ])
        #expect(finished.termination == .exited(ExitStatus.usage))
    }
}
