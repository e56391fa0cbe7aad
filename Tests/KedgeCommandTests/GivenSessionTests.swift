import Foundation
import KedgeModel
import Testing

/// `kedge upload FILE --session ID`: going on without the records of the client that began.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct GivenSessionTests {
    let scene: Scene

    init() throws { scene = try Scene() }

    /// An upload that was killed, and whose records are gone.
    private struct Orphan {
        let source: Sample
        let server: Server
        let proxy: FaultyProxy
        let session: String
        let status: SessionStatus

        var command: [String] {
            ["upload", source.path, "--server", proxy.url, "--session", session, "--json"]
        }

        /// Requests from now on that could change anything.
        func changes(since count: Int) -> [String] {
            server.requests.dropFirst(count).filter { $0.method != "GET" }.map(\.method)
        }
    }

    private func orphan() async throws -> Orphan {
        let source = try scene.sample(mebibytes: 40, plus: 12_345)
        let server = try await scene.serve()
        let proxy = try scene.proxy(to: server.port, Faults(bytesPerSecond: 4 << 20))
        let client = try scene.start(["upload", source.path, "--server", proxy.url])
        try await eventually("some chunks are there") { server.requests.created.count >= 2 }
        client.signal(SIGKILL)
        _ = try await client.wait()
        proxy.faults = Faults()
        try FileManager.default.removeItem(atPath: scene.path("state"))
        let session = try #require(server.requests.sessionIDs.first)
        try await settle(proxy)
        return Orphan(
            source: source, server: server, proxy: proxy, session: session,
            status: try await scene.session(session, at: server.url))
    }

    /// Waits until everything that a killed client sent has arrived or is lost: the server saves what was
    /// under way when the connections have ended.
    private func settle(_ proxy: FaultyProxy) async throws {
        try await eventually("all connections have ended") { proxy.counts.openCount == 0 }
        // The server saves what came after the connection has ended, and tells nobody when that is done.
        try await Task.sleep(for: .seconds(1))
    }

    // R13: from another machine nothing that was confirmed is sent again.
    @Test func `with its records wiped an upload goes on, and sends nothing twice`() async throws {
        let orphan = try await orphan()
        let before = orphan.proxy.counts.upByteCount
        let finished = try await scene.run(orphan.command)
        try finished.expectCompleted(orphan.source)
        let missing = orphan.source.byteCount - Int(orphan.status.receivedBytes)
        let sent = orphan.proxy.counts.upByteCount - before
        #expect(sent >= missing && sent < missing + 64 << 10, "\(sent) of \(missing)")
        #expect(orphan.server.requests.sessionIDs == [orphan.session])
        #expect(orphan.server.requests.created.filter { $0.value > 1 } == [:])
        try await scene.expectServed(
            orphan.source, id: finished.result.remoteFileId, at: orphan.server.url)
        // Finished, it tells its file; also where nothing is known of it.
        try FileManager.default.removeItem(atPath: scene.path("state"))
        let again = try await scene.run(orphan.command)
        try again.expectCompleted(orphan.source)
        #expect(try again.result.remoteFileId == finished.result.remoteFileId)
    }

    // One session, every protocol: bytes that came without digests are proven like any others.
    @Test func `an upload that was begun by tus is gone on with natively`() async throws {
        let source = try scene.sample(mebibytes: 24, plus: 1)
        let server = try await scene.serve()
        let proxy = try scene.proxy(to: server.port, Faults(bytesPerSecond: 4 << 20))
        let client = try scene.start([
            "upload", source.path, "--server", "\(proxy.url)/tus/", "--dialect", "tus",
        ])
        try await eventually("some bytes are there") { proxy.counts.upByteCount > 9 << 20 }
        client.signal(SIGKILL)
        _ = try await client.wait()
        try await settle(proxy)
        let id = try #require(server.requests.last { $0.method == "PATCH" }?.sessionID)
        let status = try await scene.session(id, at: server.url)
        #expect(status.receivedBytes > 0)
        proxy.faults = Faults()
        let before = proxy.counts.upByteCount
        let finished = try await scene.run([
            "upload", source.path, "--server", proxy.url, "--session", id, "--json",
        ])
        try finished.expectCompleted(source)
        let missing = source.byteCount - Int(status.receivedBytes)
        #expect(proxy.counts.upByteCount - before < missing + 64 << 10)
        try await scene.expectServed(
            source, id: finished.result.remoteFileId, at: server.url)
    }

    // The record is one like any other from then on.
    @Test func `an upload that took up a session survives a kill`() async throws {
        let orphan = try await orphan()
        orphan.proxy.faults = Faults(bytesPerSecond: 4 << 20)
        let count = orphan.server.requests.created.count
        let client = try scene.start(orphan.command)
        try await eventually("some chunks more are there") {
            orphan.server.requests.created.count >= count + 2
        }
        client.signal(SIGKILL)
        _ = try await client.wait()
        orphan.proxy.faults = Faults()
        try await scene.run(orphan.command).expectCompleted(orphan.source)
        #expect(orphan.server.requests.sessionIDs == [orphan.session])
        #expect(orphan.server.requests.created.filter { $0.value > 1 } == [:])
    }

    @Test func `another file is refused, and the session stays as it was`() async throws {
        let orphan = try await orphan()
        let count = orphan.server.requests.count
        _ = try scene.sample(mebibytes: 40, plus: 12_345, seed: 8)
        let refused = try await scene.run(orphan.command)
        #expect(refused.termination == .exited(ExitStatus.sourceChanged))
        #expect(try refused.result.errorCode == "SESSION_FILE_MISMATCH")
        #expect(orphan.changes(since: count) == [])
        let after = try await scene.session(orphan.session, at: orphan.server.url)
        #expect(after == orphan.status)
        // The right one goes on, by the same command.
        _ = try scene.sample(mebibytes: 40, plus: 12_345)
        try await scene.run(orphan.command).expectCompleted(orphan.source)
    }

    @Test func `an unknown session is an error and begins none`() async throws {
        let source = try scene.sample(mebibytes: 1)
        let server = try await scene.serve()
        let finished = try await scene.run([
            "upload", source.path, "--server", server.url, "--json", "--session",
            SessionID.random().text,
        ])
        #expect(finished.termination == .exited(ExitStatus.notFound))
        #expect(try finished.result.errorCode == "SESSION_NOT_FOUND")
        #expect(server.requests.allSatisfy { $0.method == "GET" })
    }

    @Test(arguments: [["one", "two"], ["one", "--dialect", "tus"]])
    func `a session is for one file in the native dialect`(arguments: [String]) async throws {
        let finished = try await scene.run(
            ["upload"] + arguments + [
                "--server", "http://127.0.0.1:1", "--session", SessionID.random().text,
            ])
        #expect(finished.termination == .exited(ExitStatus.usage))
    }
}
