import Foundation
import HTTPTypes
import KedgeClient
import KedgeHash
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// R13: an upload continues a session of which this client has no record.
@Suite(.timeLimit(.minutes(1)))
struct GivenSessionTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(600_000)
    private let session = SessionID.random()

    init() throws { fixture = try TransferEnvironment() }

    /// Leaves another client's session on the server: six chunks of ten and the start of a seventh.
    private func leave(
        _ change: (inout FakeServer.Session) -> Void = { _ in }
    ) {
        var left = FakeServer.Session(name: "source.bin", size: 600_000, chunkSize: 65_536)
        for index in [0, 1, 2, 5, 6, 9] { left.chunks[index] = chunk(index) }
        left.partials[3] = Array(chunk(3).prefix(40_000))
        change(&left)
        fixture.server.state.withLock { $0.sessions[session] = left }
    }

    private func chunk(_ index: Int) -> [UInt8] {
        Array(bytes[(index * 65_536)..<min(600_000, (index + 1) * 65_536)])
    }

    private func upload(
        _ client: TransferClient, to session: SessionID? = nil
    ) async throws -> TransferSnapshot {
        let options = UploadOptions(sessionID: session ?? self.session)
        return try await client.run(
            try await client.enqueueUpload(path: fixture.path("source.bin"), options: options))
    }

    /// Requests that could change the server's state.
    private var changes: [FakeServer.Seen] {
        fixture.server.state.withLock { $0.seen.filter { $0.method != "GET" } }
    }

    private func expectRefused(_ snapshot: TransferSnapshot, _ code: ErrorCode) {
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == code, "\(snapshot.message)")
        #expect(changes.map(\.path) == [])
    }

    @Test func `only the bytes that the given session misses are sent`() async throws {
        try fixture.write("source.bin", bytes)
        leave()
        let snapshot = try await upload(try await fixture.client())
        fixture.expectUploaded(snapshot, bytes)
        #expect(snapshot.sessionID == session)
        #expect(fixture.sessions.count == 1)
        let sent = fixture.seen("PUT", "/chunks/").map { $0.path.split(separator: "/").last ?? "" }
        #expect(sent.sorted() == ["3", "4", "7", "8"])
        let rest = fixture.seen("PUT", "/chunks/3").first?.fields[.contentRange]
        #expect(rest == "bytes 236608-262143/600000")
    }

    @Test func `a given session without bytes takes the complete file`() async throws {
        try fixture.write("source.bin", bytes)
        leave {
            $0.chunks = [:]
            $0.partials = [:]
        }
        fixture.expectUploaded(try await upload(try await fixture.client()), bytes)
        #expect(fixture.sessions.count == 1)
    }

    static let otherBytes = [0, 65_536 * 2 + 5, 65_536 * 3 + 39_999, 599_999]

    @Test(arguments: otherBytes)
    func `a file with another byte than the session is refused, and nothing is changed`(offset: Int)
        async throws
    {
        leave()
        var other = bytes
        other[offset] ^= 1
        try fixture.write("source.bin", other)
        expectRefused(try await upload(try await fixture.client()), .sessionFileMismatch)
    }

    @Test(arguments: [599_999, 600_001, 0])
    func `a file of another size than the session is refused, and nothing is changed`(size: Int)
        async throws
    {
        leave()
        try fixture.write("source.bin", TransferEnvironment.bytes(size))
        expectRefused(try await upload(try await fixture.client()), .sessionFileMismatch)
    }

    @Test func `a file without the declared digest is refused`() async throws {
        leave {
            $0.chunks = [:]
            $0.partials = [:]
            $0.declaredDigest = SHA256Hasher.digest(of: [1])
        }
        try fixture.write("source.bin", bytes)
        expectRefused(try await upload(try await fixture.client()), .sessionFileMismatch)
    }

    @Test(arguments: [
        (SessionState.expired, ErrorCode.sessionExpired), (.canceled, .sessionClosed),
        (.failed, .sessionClosed),
    ])
    func `an ended session is an error and is not replaced by a new one`(
        state: SessionState, code: ErrorCode
    ) async throws {
        try fixture.write("source.bin", bytes)
        leave { $0.state = state }
        expectRefused(try await upload(try await fixture.client()), code)
    }

    @Test func `an unknown session is an error, and another one can be given afterwards`()
        async throws
    {
        try fixture.write("source.bin", bytes)
        leave()
        let client = try await fixture.client()
        expectRefused(try await upload(client, to: .random()), .sessionNotFound)
        fixture.expectUploaded(try await upload(client), bytes)
    }

    @Test(arguments: [ErrorCode.sessionExpired, .sessionNotFound])
    func `a given session that disappears during the upload is not replaced`(
        code: ErrorCode
    ) async throws {
        try fixture.write("source.bin", bytes)
        leave()
        fixture.plan(.answer(Reply(problem: code)), count: 100) { $0.path.hasSuffix("/chunks/8") }
        let snapshot = try await upload(try await fixture.client())
        #expect(snapshot.errorCode == code)
        #expect(fixture.sessions.count == 1)
        #expect(fixture.seen("POST", "uploads/sessions").isEmpty)
        #expect(fixture.seen("DELETE", "uploads/sessions").isEmpty)
    }

    @Test func `a completed session yields its file`() async throws {
        try fixture.write("source.bin", bytes)
        leave { left in for index in 0..<10 { left.chunks[index] = chunk(index) } }
        let client = try await fixture.client()
        let first = try await upload(client)
        fixture.server.state.withLock { $0.seen = [] }
        let elsewhere = try await fixture.client {
            $0.stateDirectory = fixture.path("other-state")
        }
        let again = try await upload(elsewhere)
        fixture.expectUploaded(again, bytes)
        #expect(again.remoteFileID == first.remoteFileID)
        #expect(fixture.seen("PUT", "/chunks/").isEmpty)
    }

    @Test func `a completed session of another file is refused`() async throws {
        try fixture.write("source.bin", bytes)
        leave {
            $0.state = .completed
            $0.declaredDigest = SHA256Hasher.digest(of: [1])
        }
        expectRefused(try await upload(try await fixture.client()), .sessionFileMismatch)
    }

    @Test func `a server without digests is reported differently from another file`() async throws {
        try fixture.write("source.bin", bytes)
        leave()
        fixture.server.state.withLock { $0.offersSessionDigests = false }
        expectRefused(try await upload(try await fixture.client()), .badRequest)
    }

    @Test func `digests that do not fit the chunks are a protocol violation`() async throws {
        try fixture.write("source.bin", bytes)
        leave()
        fixture.plan(
            .rewrite { reply in
                let text = String(decoding: reply.body, as: UTF8.self)
                reply.body = Array(text.replacing("[[0,2]", with: "[[0,3]").utf8)
            }, count: 100)
        expectRefused(try await upload(try await fixture.client()), .protocolViolation)
    }

    @Test func `after a kill the same command continues without another comparison`() async throws {
        let path = try fixture.write("source.bin", bytes)
        leave()
        let gate = Gate()
        fixture.plan(.wait(gate), count: 100) { $0.path.hasSuffix("/chunks/7") }
        let options = UploadOptions(sessionID: session)
        let id: TransferID
        do {
            let client = try await fixture.client()
            id = try await client.enqueueUpload(path: path, options: options)
            let run = Task { try await client.run(id) }
            await gate.waitForArrival()
            run.cancel()
            _ = try await run.value
        }
        gate.open()
        fixture.server.state.withLock { $0.faults = [] }
        let next = try await fixture.client()
        #expect(try await next.enqueueUpload(path: path, options: options) == id)
        fixture.expectUploaded(try await next.run(id), bytes)
        #expect(fixture.seen("GET", "?chunks=digests").count == 1)
    }

    @Test func `a file that was rewritten with the same bytes is compared again`() async throws {
        try fixture.write("source.bin", bytes)
        leave()
        fixture.plan(.answer(Reply(problem: .badRequest))) { $0.path.hasSuffix("/chunks/7") }
        let client = try await fixture.client()
        #expect(try await upload(client).state == .failed)
        try FileManager.default.removeItem(atPath: fixture.path("source.bin"))
        try fixture.write("source.bin", bytes)
        fixture.expectUploaded(try await upload(client), bytes)
        #expect(fixture.seen("GET", "?chunks=digests").count == 2)
    }

    @Test func `a file that changes during the upload is not put into another session`()
        async throws
    {
        let path = try fixture.write("source.bin", bytes)
        leave()
        let gate = Gate()
        fixture.plan(.wait(gate)) { $0.path.hasSuffix("/chunks/4") }
        let client = try await fixture.client()
        let options = UploadOptions(sessionID: session)
        let id = try await client.enqueueUpload(path: path, options: options)
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        try fixture.write("source.bin", TransferEnvironment.bytes(600_000, seed: 8))
        gate.open()
        let snapshot = try await run.value
        #expect(snapshot.id == id)
        #expect(snapshot.errorCode == .fileChanged)
        #expect(fixture.sessions.count == 1)
        #expect(fixture.seen("DELETE", "uploads/sessions").isEmpty)
        #expect(fixture.seen("POST", "uploads/sessions").isEmpty)
    }

    @Test func `an unfinished upload with another session is not moved to the given one`()
        async throws
    {
        try fixture.write("source.bin", bytes)
        leave()
        fixture.plan(.answer(Reply(problem: .badRequest)), when: { $0.method == "PUT" })
        let client = try await fixture.client()
        let own = try await client.run(
            try await client.enqueueUpload(path: fixture.path("source.bin")))
        #expect(own.state == .failed)
        await #expect(throws: TransferError(.usage, operation: "upload")) {
            try await upload(client)
        }
        #expect(try await client.transfers().map(\.sessionID) == [own.sessionID])
    }

    @Test func `an upload without a given session creates one`() async throws {
        try fixture.write("source.bin", bytes)
        let client = try await fixture.client()
        #expect(try await upload(client).errorCode == .sessionNotFound)
        let plain = try await client.run(
            try await client.enqueueUpload(path: fixture.path("source.bin")))
        fixture.expectUploaded(plain, bytes)
    }

    @Test(arguments: [UploadProtocol.tus, .resumableUpload])
    func `a session can be given only in the native protocol`(uploadProtocol: UploadProtocol)
        async throws
    {
        let path = try fixture.write("source.bin", bytes)
        let client = try await fixture.client()
        let options = UploadOptions(uploadProtocol: uploadProtocol, sessionID: session)
        await #expect(throws: TransferError(.usage, operation: "upload")) {
            try await client.enqueueUpload(path: path, options: options)
        }
    }
}
