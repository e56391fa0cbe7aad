import Foundation
import HTTPTypes
import KedgeClient
import KedgeHash
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// R117, R118: an edit in place that keeps size and modification time changes only the ctime, like
/// a change of mode. Only the bytes distinguish the two.
@Suite(.timeLimit(.minutes(1)))
struct SourceEditTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(600_000)

    init() throws { fixture = try TransferEnvironment() }

    private func isChunk(_ index: Int) -> @Sendable (FakeServer.Seen) -> Bool {
        { $0.method == "PUT" && $0.path.hasSuffix("/chunks/\(index)") }
    }

    /// Begins an upload and stops it while chunk 6 is in flight and the chunks before it are
    /// confirmed.
    private func stopUpload() async throws -> TransferID {
        try fixture.write("source.bin", bytes)
        let gate = Gate()
        fixture.plan(.wait(gate), count: 100) {
            $0.method == "PUT" && ["6", "7", "8", "9"].contains($0.path.suffix(1))
        }
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: fixture.path("source.bin"))
        let run = Task { try await client.run(id) }
        #expect(
            try await eventually { try await client.store.upload(id).uploadedChunks.count == 6 })
        run.cancel()
        _ = try await run.value
        try await client.close()
        fixture.server.state.withLock { $0.faults = [] }
        return id
    }

    private func expectReplaced(
        _ id: TransferID, by snapshot: TransferSnapshot, _ client: TransferClient,
        _ newer: [UInt8]
    ) async throws {
        #expect(snapshot.state == .completed, "\(snapshot.message)")
        #expect(snapshot.replaces == id)
        #expect(snapshot.sha256 == SHA256Hasher.digest(of: newer))
        fixture.expectStored(snapshot, newer)
        #expect(try await client.transfer(id).errorCode == .fileChanged)
    }

    @Test(arguments: [100, 300_000, 599_999])
    func `a file that was edited between two runs is uploaded anew`(offset: Int) async throws {
        let id = try await stopUpload()
        let newer = try fixture.edit("source.bin", at: offset)
        let client = try await fixture.client()
        let snapshot = try await client.run(id)
        fixture.expectStored(snapshot, newer)
        // Bytes that were not read yet are not another version.
        guard offset < 393_216 else { return #expect(snapshot.state == .completed) }
        try await expectReplaced(id, by: snapshot, client, newer)
    }

    @Test func `a file that is edited in the middle of a run is uploaded anew`() async throws {
        try fixture.write("source.bin", bytes)
        let gate = Gate()
        fixture.plan(.wait(gate), when: isChunk(5))
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: fixture.path("source.bin"))
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        let newer = try fixture.edit("source.bin", at: 100)
        gate.open()
        try await expectReplaced(id, by: try await run.value, client, newer)
    }

    // The kernel sets the size first and the modification time last.
    @Test func `a file that is truncated slowly is replaced once`() async throws {
        try fixture.write("source.bin", bytes)
        let (path, gate) = (fixture.path("source.bin"), Gate())
        fixture.files.beforeRead(after: 5) {
            truncate(path, 200_000)
            Thread.detachNewThread {
                usleep(30_000)
                utimes(path, nil)
                gate.open()
            }
        }
        let sessionCount = Counter()
        fixture.plan(.wait(gate)) {
            $0.route == "/uploads/sessions" && sessionCount.next() > 0
        }
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: path)
        let snapshot = try await client.run(id)
        try await expectReplaced(id, by: snapshot, client, Array(bytes.prefix(200_000)))
        #expect(try await client.transfers().count == 2)
    }

    @Test func `an upload of a file that was only touched continues`() async throws {
        let id = try await stopUpload()
        try fixture.touch("source.bin")
        let snapshot = try await fixture.client().run(id)
        fixture.expectUploaded(snapshot, bytes)
        #expect(snapshot.id == id)
        #expect(fixture.sessions.count == 1)
    }

    @Test func `an upload of a file that is touched in the middle of a run continues`()
        async throws
    {
        try fixture.write("source.bin", bytes)
        let gate = Gate()
        fixture.plan(.wait(gate), when: isChunk(5))
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: fixture.path("source.bin"))
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        try fixture.touch("source.bin")
        gate.open()
        let snapshot = try await run.value
        fixture.expectUploaded(snapshot, bytes)
        #expect(snapshot.id == id)
        #expect(fixture.sessions.count == 1)
    }

    @Test func `an upload recorded by an older kedge is compared and continues`() async throws {
        let id = try await stopUpload()
        try fixture.forgetProofs()
        let client = try await fixture.client()
        let snapshot = try await client.run(id)
        fixture.expectUploaded(snapshot, bytes)
        #expect(snapshot.id == id)
        #expect(try await client.store.upload(id).identity.changedNanoseconds != nil)
    }

    @Test func `an edit of an upload recorded by an older kedge is noticed`() async throws {
        let id = try await stopUpload()
        try fixture.forgetProofs()
        let newer = try fixture.edit("source.bin", at: 100)
        let client = try await fixture.client()
        try await expectReplaced(id, by: try await client.run(id), client, newer)
    }

    // The answer was lost with the process that waited for it.
    @Test(arguments: [false, true])
    func `a chunk that is not in the records is compared by the server`(
        isOther: Bool
    ) async throws {
        let id = try await stopUpload()
        try fixture.forgetProofs()
        try fixture.forgetHash()
        if isOther {
            let newer = try fixture.edit("source.bin", at: 100)
            let client = try await fixture.client()
            return try await expectReplaced(id, by: try await client.run(id), client, newer)
        }
        let snapshot = try await fixture.client().run(id)
        #expect(snapshot.state == .completed)
        #expect(snapshot.id == id)
        fixture.expectStored(snapshot, bytes)
        let asked = fixture.seen("PUT", "/chunks/").filter { $0.fields[.expect] == "100-continue" }
        #expect(
            Set(asked.map { $0.path.suffix(1) }).isSuperset(of: ["0", "1", "2", "3", "4", "5"]))
    }

    @Test func `chunk digests are kept until the upload is finished`() async throws {
        let id = try await stopUpload()
        let client = try await fixture.client()
        #expect(try await client.store.chunkDigests(of: id).count == 6)
        _ = try await client.run(id)
        #expect(try await client.store.chunkDigests(of: id).isEmpty)
    }

    @Test func `a finished upload is found again after a touch and not after an edit`()
        async throws
    {
        try fixture.write("source.bin", bytes)
        let client = try await fixture.client()
        let path = fixture.path("source.bin")
        let id = try await client.run(try await client.enqueueUpload(path: path)).id
        try fixture.touch("source.bin")
        #expect(try await client.finishedUpload(path: path)?.id == id)
        let readCount = fixture.files.readByteCount(path)
        #expect(try await client.finishedUpload(path: path)?.id == id)
        #expect(fixture.files.readByteCount(path) == readCount)
        try fixture.edit("source.bin", at: 100)
        #expect(try await client.finishedUpload(path: path) == nil)
    }
}

/// Edits of the file during uploads in the protocols that take bytes in order.
@Suite(.timeLimit(.minutes(2)))
struct SequentialSourceEditTests {
    /// Bytes that are sent in several requests.
    private let bytes = TransferEnvironment.bytes(16 << 20)

    /// Begins an upload whose second request waits, with the first one acknowledged.
    private func begin(
        _ fixture: SequentialUploadEnvironment
    ) async throws -> (TransferClient, TransferID, Gate, Task<TransferSnapshot, any Error>) {
        try fixture.base.write("source.bin", bytes)
        let gate = Gate()
        fixture.plan(.wait(gate)) { $0.method == "PATCH" && $0.fields[.uploadOffset] != "0" }
        let client = try await fixture.client()
        let id = try await fixture.enqueue(client)
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        return (client, id, gate, run)
    }

    private func stop(_ fixture: SequentialUploadEnvironment) async throws -> TransferID {
        let (client, id, gate, run) = try await begin(fixture)
        run.cancel()
        _ = try await run.value
        gate.open()
        try await client.close()
        return id
    }

    private func expectReplaced(
        _ id: TransferID, by snapshot: TransferSnapshot, _ fixture: SequentialUploadEnvironment,
        _ newer: [UInt8]
    ) {
        fixture.expectUploaded(snapshot, newer)
        #expect(snapshot.replaces == id)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `a file that was edited between two runs is uploaded anew`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        let id = try await stop(fixture)
        let newer = try fixture.base.edit("source.bin", at: 100)
        expectReplaced(id, by: try await fixture.client().run(id), fixture, newer)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `a file that is edited in the middle of a run is uploaded anew`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        let (_, id, gate, run) = try await begin(fixture)
        let newer = try fixture.base.edit("source.bin", at: 100)
        gate.open()
        expectReplaced(id, by: try await run.value, fixture, newer)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols, [false, true])
    func `an upload of a file that was only touched continues`(
        uploadProtocol: UploadProtocol, isOld: Bool
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        let id = try await stop(fixture)
        if isOld { try fixture.base.forgetProofs() } else { try fixture.base.touch("source.bin") }
        let snapshot = try await fixture.client().run(id)
        fixture.expectUploaded(snapshot, bytes)
        #expect(snapshot.id == id)
        #expect(fixture.seen("POST").count == 1)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `an upload of a file that is touched in the middle of a run continues`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        let (_, id, gate, run) = try await begin(fixture)
        try fixture.base.touch("source.bin")
        gate.open()
        let snapshot = try await run.value
        fixture.expectUploaded(snapshot, bytes)
        #expect(snapshot.id == id)
        #expect(fixture.seen("POST").count == 1)
    }

    // The kill comes before the answer to a request. The hash is recorded before the body is sent.
    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `an upload of a touched file continues after a kill in the middle of a piece`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        let id = try await stop(fixture)
        let sent = Array(bytes.prefix(2 * Int(AdaptiveBodySize.initial)))
        fixture.set { $0.uploads["1"]?.bytes = sent }
        try fixture.base.touch("source.bin")
        let snapshot = try await fixture.client().run(id)
        fixture.expectUploaded(snapshot, bytes)
        #expect(snapshot.id == id)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `an upload whose bytes cannot be proven unchanged is begun anew`(
        uploadProtocol: UploadProtocol
    )
        async throws
    {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        let id = try await stop(fixture)
        try fixture.base.forgetProofs()
        try fixture.base.forgetHash()
        expectReplaced(id, by: try await fixture.client().run(id), fixture, bytes)
    }
}
