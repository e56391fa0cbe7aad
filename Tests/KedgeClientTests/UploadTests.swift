import Foundation
import HTTPTypes
import KedgeClient
import KedgeHash
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct UploadTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(600_000)
    private let isChunk: @Sendable (FakeServer.Seen) -> Bool = { $0.method == "PUT" }
    private let isFinalize: @Sendable (FakeServer.Seen) -> Bool = { $0.path.hasSuffix("/finalize") }

    init() throws { fixture = try TransferEnvironment() }

    private func isChunk(_ index: Int) -> @Sendable (FakeServer.Seen) -> Bool {
        { $0.method == "PUT" && $0.path.hasSuffix("/chunks/\(index)") }
    }

    private func upload(_ client: TransferClient) async throws -> TransferSnapshot {
        try await client.run(try await client.enqueueUpload(path: fixture.path("source.bin")))
    }

    private func expectStored(_ snapshot: TransferSnapshot, _ bytes: [UInt8]) {
        fixture.expectStored(snapshot, bytes)
    }

    private func expectCompleted(_ snapshot: TransferSnapshot) {
        fixture.expectUploaded(snapshot, bytes)
    }

    // R55–R58, R76, R22.
    @Test func `a file arrives as it is and is read once`() async throws {
        let path = try fixture.write("source.bin", bytes)
        let client = try await fixture.client()
        expectCompleted(try await upload(client))
        // A hash that falls behind on a busy machine reads some chunks again, never all of them.
        #expect(fixture.files.readByteCount(path) < 2 * 600_000)
        let puts = fixture.seen("PUT", "/chunks/")
        #expect(puts.count == 10)
        for put in puts {
            #expect(put.fields[.chunkHash]?.hasPrefix("sha256=") == true)
            #expect(put.fields[.authorization] == "Bearer secret")
        }
        #expect(puts.contains { $0.fields[.contentRange] == "bytes 589824-599999/600000" })
    }

    @Test func `a file of no bytes has no chunks and completes`() async throws {
        try fixture.write("source.bin", [])
        let snapshot = try await upload(try await fixture.client())
        #expect(snapshot.state == .completed)
        expectStored(snapshot, [])
        #expect(fixture.seen("PUT", "/chunks/").isEmpty)
    }

    // R9, R54.
    @Test func `an upload uses the server's chunk size`() async throws {
        try fixture.write("source.bin", bytes)
        fixture.server.state.withLock { $0.chunkSize = 100_000 }
        expectCompleted(try await upload(try await fixture.client()))
        #expect(fixture.seen("PUT", "/chunks/").count == 6)
    }

    @Test func `chunks larger than memory allows are sent from the file`() async throws {
        let large = TransferEnvironment.bytes(20 << 20)
        try fixture.write("source.bin", large)
        let client = try await fixture.client { $0.chunkSize = 9 << 20 }
        fixture.plan(.dropBody(after: 3 << 20), when: isChunk(1))
        let snapshot = try await upload(client)
        #expect(snapshot.state == .completed)
        expectStored(snapshot, large)
        #expect(fixture.repeatedByteCount == 0)
    }

    // R132: the link dies inside a chunk.
    @Test func `an upload over a link that dies every few kilobytes finishes and repeats no byte`()
        async throws
    {
        try fixture.write("source.bin", bytes)
        fixture.plan(.dropBody(after: 20_000), count: 25, when: isChunk)
        let client = try await fixture.client()
        expectCompleted(try await upload(client))
    }

    // R133: the fault hits each request of an upload in turn.
    @Test(arguments: ["lost answer", "dropped", "stalled", "offline"], 0..<13)
    func `any one request may be lost, before or after it was carried out`(
        kind: String, position: Int
    ) async throws {
        let faults: [String: Fault] = [
            "lost answer": .loseResponse, "dropped": .fail(.dropped),
            "stalled": .fail(.stalled), "offline": .offline,
        ]
        try fixture.write("source.bin", bytes)
        let counter = Counter()
        fixture.plan(try #require(faults[kind])) { _ in counter.next() == position }
        expectCompleted(try await upload(try await fixture.client()))
        #expect(fixture.sessions.count == 1)
    }

    // R1, R6, R8, R134: the client object is released, as with a killed process.
    @Test(arguments: [1, 4, 9])
    func `after a kill the next client goes on where the last one stopped`(
        chunkCount: Int
    ) async throws {
        let path = try fixture.write("source.bin", bytes)
        let gate = Gate()
        let counter = Counter()
        fixture.plan(.wait(gate), count: 100) { seen in
            seen.method == "PUT" && counter.next() >= chunkCount
        }
        let id: TransferID
        do {
            let client = try await fixture.client()
            id = try await client.enqueueUpload(path: path)
            let run = Task { try await client.run(id) }
            await gate.waitForArrival()
            let confirmed = {
                try await client.transfer(id).bytesTransferred >= (chunkCount - 1) * 65_536
            }
            #expect(try await eventually(confirmed))
            run.cancel()
            let stopped = try await run.value
            #expect(stopped.state == .paused)
            #expect(stopped.pauseReason == .shutdown)
        }
        gate.open()
        fixture.server.state.withLock { $0.faults = [] }
        let readBefore = fixture.files.readByteCount(path)
        let next = try await fixture.client()
        // R105: the same command continues the same transfer, without a step back.
        #expect(try await next.enqueueUpload(path: path) == id)
        let before = try await next.transfer(id).bytesTransferred
        expectCompleted(try await next.run(id))
        // R71: the hash continues from its saved state, so confirmed chunks are not read again.
        let readAgain = fixture.files.readByteCount(path) - readBefore
        #expect(readAgain <= 600_000 - before + 65_536)
    }

    // R75, R129.
    @Test func `an expired session is replaced, and its chunks are taken over`() async throws {
        try fixture.write("source.bin", bytes)
        fixture.plan(.answer(Reply(problem: .sessionExpired)), when: isChunk(5))
        expectCompleted(try await upload(try await fixture.client()))
        #expect(fixture.sessions.count == 2)
    }

    // R75: the answer to the creation was lost, and the next attempt came after the session's
    // expiry. The idempotency key then means an expired session forever.
    @Test func `an idempotency key of an expired session is replaced`() async throws {
        try fixture.write("source.bin", bytes)
        fixture.plan(.answer(Reply(problem: .sessionExpired))) {
            $0.method == "POST" && $0.route == "/uploads/sessions"
        }
        let snapshot = try await upload(try await fixture.client())
        #expect(snapshot.state == .completed)
        expectStored(snapshot, bytes)
        let keys = fixture.seen("POST", "uploads/sessions").filter { !$0.path.contains("finalize") }
            .map { $0.fields[.idempotencyKey] }
        #expect(keys.count == 2)
        #expect(Set(keys).count == 2)
    }

    @Test func `a session that the server forgot is begun anew`() async throws {
        try fixture.write("source.bin", bytes)
        fixture.plan(.answer(Reply(status: 404)), when: isChunk(3))
        let snapshot = try await upload(try await fixture.client())
        #expect(snapshot.state == .completed)
        expectStored(snapshot, bytes)
    }

    // R16, R137: one bit flipped on the way.
    @Test func `a chunk that arrives damaged is sent again alone`() async throws {
        try fixture.write("source.bin", bytes)
        fixture.plan(.corruptBody, when: isChunk(6))
        let client = try await fixture.client()
        let snapshot = try await upload(client)
        expectCompleted(snapshot)
        let counts = Dictionary(grouping: fixture.seen("PUT", "/chunks/"), by: \.path).mapValues(
            \.count)
        #expect(counts.values.filter { $0 > 1 }.count == 1)
        // R139: both attempts are recorded.
        #expect(try await client.diagnose(snapshot.id).repeatedChunks == [6: 2])
    }

    // R78, R79, R119.
    @Test func `a wrong whole-file hash restarts the upload once with a new session`() async throws
    {
        try fixture.write("source.bin", bytes)
        fixture.plan(.answer(Reply(problem: .integrityMismatch)), when: isFinalize)
        let snapshot = try await upload(try await fixture.client())
        #expect(snapshot.state == .completed)
        #expect(snapshot.integrityFailureCount == 1)
        #expect(fixture.sessions.count == 2)
        #expect(fixture.sessions.filter { $0.state == .canceled }.count == 1)
    }

    // R82, R110.
    @Test func `a second hash mismatch fails the upload, and a retry from scratch cures it`()
        async throws
    {
        try fixture.write("source.bin", bytes)
        let wrong = FinalizeResponse(
            remoteFileId: .random(), fileHashSha256: SHA256Hasher.digest(of: [1]), size: 600_000,
            etag: "\"x\"")
        fixture.plan(.answer(Reply(json: wrong)), count: 2, when: isFinalize)
        let client = try await fixture.client()
        let failed = try await upload(client)
        #expect(failed.state == .failed)
        #expect(failed.errorCode == .integrityMismatch)
        #expect(failed.remoteFileID == nil)
        // No client can continue either session.
        #expect(fixture.sessions.map(\.state) == [.canceled, .canceled])
        try await client.retry(failed.id, fromScratch: true)
        #expect(try await client.transfer(failed.id).bytesTransferred == 0)
        let done = try await client.run(failed.id)
        #expect(done.state == .completed)
        expectStored(done, bytes)
    }

    @Test func `chunks that the server lost before finalize are sent again`() async throws {
        try fixture.write("source.bin", bytes)
        let server = fixture.server
        fixture.plan(.offline, when: isFinalize)
        let counter = Counter()
        fixture.plan(
            .rewrite { reply in
                guard reply.status == 200 else { return }
                server.state.withLock { state in
                    for id in state.sessions.keys {
                        state.sessions[id]?.state = .open
                        state.sessions[id]?.chunks[4] = nil
                    }
                }
                reply = Reply(problem: .missingChunks)
            }
        ) { $0.path.hasSuffix("/finalize") && counter.next() == 0 }
        let snapshot = try await upload(try await fixture.client())
        #expect(snapshot.state == .completed)
        expectStored(snapshot, bytes)
    }

    // R113.
    @Test func `a missing file has its own code`() async throws {
        let path = try fixture.write("source.bin", bytes)
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: path)
        try FileManager.default.removeItem(atPath: path)
        let failed = try await client.run(id)
        #expect(failed.state == .failed)
        #expect(failed.errorCode == .fileMissing)
        #expect(fixture.seen("POST", "/uploads").isEmpty)
        await #expect(throws: TransferError(.fileMissing, operation: "")) {
            _ = try await client.enqueueUpload(path: path)
        }
    }

    // R100, R117, R118, R138.
    @Test func `a file that changes during the upload gets a new transfer and session`()
        async throws
    {
        let path = try fixture.write("source.bin", bytes)
        let gate = Gate()
        fixture.plan(.wait(gate), when: isChunk(5))
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: path)
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        let newer = TransferEnvironment.bytes(500_000, seed: 99)
        try fixture.write("source.bin", newer)
        gate.open()
        let snapshot = try await run.value
        #expect(snapshot.state == .completed)
        #expect(snapshot.id != id)
        #expect(snapshot.replaces == id)
        expectStored(snapshot, newer)
        let old = try await client.transfer(id)
        #expect(old.state == .canceled)
        #expect(old.errorCode == .fileChanged)
        #expect(old.replacedBy == snapshot.id)
        #expect(fixture.sessions.filter { $0.state == .canceled }.count == 1)
    }

    // R104.
    @Test func `an upload waits queued for an unreachable server, without using up attempts`()
        async throws
    {
        try fixture.write("source.bin", bytes)
        fixture.plan(.offline, count: 200)
        let gate = Gate()
        fixture.plan(.wait(gate))
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: fixture.path("source.bin"))
        #expect(try await client.transfer(id).message == "Waiting to upload")
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        let waiting = try await client.transfer(id)
        #expect(waiting.state == .queued)
        #expect(waiting.isWaiting)
        #expect(waiting.errorCode == .offline)
        #expect(waiting.message.hasPrefix("Waiting to upload"))
        gate.open()
        expectCompleted(try await run.value)
    }

    @Test func `a transfer stays queued after the timeout`() async throws {
        try fixture.write("source.bin", bytes)
        fixture.plan(.offline, count: 1_000_000)
        let client = try await fixture.client { $0.serverTimeout = .milliseconds(50) }
        let snapshot = try await upload(client)
        #expect(snapshot.state == .queued)
        #expect(snapshot.errorCode == .offline)
    }

    @Test func `a permanent refusal is not repeated`() async throws {
        try fixture.write("source.bin", bytes)
        fixture.plan(.answer(Reply(problem: .fileTooLarge)), count: 99)
        let snapshot = try await upload(try await fixture.client())
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .fileTooLarge)
        #expect(fixture.seen("POST", "/uploads").count == 1)
    }

    @Test func `an upload waits as long as the server asks`() async throws {
        try fixture.write("source.bin", bytes)
        var busy = Reply(problem: .busy)
        busy.fields[.retryAfter] = "9"
        fixture.plan(.answer(busy), count: 3, when: isChunk)
        expectCompleted(try await upload(try await fixture.client()))
        #expect(fixture.delays.withLock { $0.filter { $0 >= .seconds(9) }.count } == 3)
    }

    @Test func `the log-in page of a captive portal is no answer of a known server`() async throws {
        try fixture.write("source.bin", [1])
        _ = try await upload(try await fixture.client())
        try fixture.write("source.bin", bytes)
        fixture.plan(
            .answer(Reply(status: 200, fields: [.contentType: "text/html"], body: [60, 104, 62])),
            count: 3)
        expectCompleted(try await upload(try await fixture.client()))
    }
}
