import HTTPTypes
import KedgeClient
import KedgeHash
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// Completion of an upload: the server's last answer decides, about the bytes that were sent.
@Suite(.timeLimit(.minutes(2)))
struct SequentialUploadTrustTests {
    private let bytes = TransferEnvironment.bytes(600_000)

    /// Makes the server report half of the bytes `count` times and then forget the upload.
    private func loseHalf(_ fixture: SequentialUploadEnvironment, count: Int) {
        fixture.plan(
            .rewrite { reply in
                reply.fields[.uploadOffset] = "300000"
                if fixture.uploadProtocol == .resumableUpload {
                    reply.fields[.named("Upload-Complete")] = "?0"
                }
            }, count: count
        ) { $0.method == "HEAD" && $0.path.hasSuffix("/1") }
        fixture.plan(.answer(Reply(status: 404)), count: 1000) { seen in
            seen.path.hasSuffix("/1")
                && (seen.method == "HEAD" || seen.fields[.uploadOffset] == "300000")
        }
    }

    @Test(arguments: SequentialUploadEnvironment.protocols, [1, 2])
    func `an upload whose acknowledged bytes the server lost is not complete`(
        uploadProtocol: UploadProtocol, count: Int
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        loseHalf(fixture, count: count)
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
        #expect(fixture.seen("POST").count == 2)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `after a kill an upload whose acknowledged bytes the server lost is not complete`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        try fixture.base.write("source.bin", bytes)
        let (id, stopped) = try await fixture.stopUpload(at: "HEAD")
        #expect(stopped.bytesTransferred == 600_000)
        loseHalf(fixture, count: 1)
        fixture.expectUploaded(try await fixture.client().run(id), bytes)
        #expect(fixture.seen("POST").count == 2)
    }

    // R79, R119.
    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `an upload that had another digest twice is not taken for the file later`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.set { $0.digest = SHA256Hasher.digest(of: [1]) }
        let failed = try await fixture.upload(bytes)
        #expect(failed.errorCode == .integrityMismatch)
        #expect(failed.uploadURL == nil)
        #expect(fixture.uploads.isEmpty)
        fixture.set { state in
            state.digest = nil
            state.uploads = [:]
        }
        let client = try await fixture.client()
        let snapshot = try await client.run(try await fixture.enqueue(client))
        fixture.expectUploaded(snapshot, bytes)
        #expect(snapshot.id == failed.id)
    }

    // R117, R118. Bodies that are larger than one read are read while they are sent.
    @Test func `a file that changes while its last bytes are sent is uploaded anew`()
        async throws
    {
        let fixture = try SequentialUploadEnvironment(.resumableUpload)
        let (first, second) = (
            TransferEnvironment.bytes(10 << 20), TransferEnvironment.bytes(10 << 20, seed: 8)
        )
        fixture.set { state in
            state.limit = "min-append-size=\(10 << 20)"
            state.checksContentDigest = false
        }
        try fixture.base.write("source.bin", first)
        let gate = Gate()
        fixture.plan(.wait(gate)) { $0.method == "PATCH" }
        let client = try await fixture.client()
        let id = try await fixture.enqueue(client)
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        try fixture.base.write("source.bin", second)
        gate.open()
        let snapshot = try await run.value
        fixture.expectUploaded(snapshot, second)
        #expect(snapshot.replaces == id)
        #expect(try await client.transfer(id).errorCode == .fileChanged)
    }

    // R117, R118.
    @Test(arguments: SequentialUploadEnvironment.protocols, [600_000, 599_000])
    func `a file that changes while it is read only for its hash is uploaded anew`(
        uploadProtocol: UploadProtocol, arrivedCount: Int
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        try fixture.base.write("source.bin", bytes)
        let (id, _) = try await fixture.stopUpload(at: "PATCH")
        // All or nearly all bytes arrived before the kill, and the record has none of them.
        try fixture.base.forgetHash()
        let (base, newer) = (fixture.base, TransferEnvironment.bytes(600_000, seed: 8))
        fixture.set { state in
            state.uploads["1"]?.bytes = Array(bytes.prefix(arrivedCount))
            state.uploads["1"]?.isComplete = arrivedCount == bytes.count
        }
        // The client first reads the missing bytes to send them.
        base.files.beforeRead(after: arrivedCount < bytes.count ? 1 : 0) {
            do {
                try base.write("source.bin", newer)
            } catch {
                Issue.record(error)
            }
        }
        let next = try await fixture.client()
        let snapshot = try await next.run(id)
        fixture.expectUploaded(snapshot, newer)
        #expect(snapshot.replaces == id)
    }

    @Test(
        arguments: SequentialUploadEnvironment.protocols,
        [Reply(status: 200), Reply(status: 303), Reply(status: 403), Reply(status: 400)])
    func `a later answer at the upload's address does not invalidate a completed upload`(
        uploadProtocol: UploadProtocol, reply: Reply
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.plan(.answer(reply), count: 1000) { $0.method == "HEAD" }
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
        #expect(fixture.seen("HEAD").count == 1)
    }

    @Test func `after a kill a later answer does not invalidate a tus upload that has all bytes`()
        async throws
    {
        let fixture = try SequentialUploadEnvironment(.tus)
        try fixture.base.write("source.bin", bytes)
        let (id, _) = try await fixture.stopUpload(at: "HEAD")
        fixture.plan(.answer(Reply(status: 200)), count: 1000) { $0.method == "HEAD" }
        fixture.expectUploaded(try await fixture.client().run(id), bytes)
        #expect(fixture.seen("POST").count == 1)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `a foreign answer at the upload's address does not complete an unfinished upload`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.plan(.fail(.dropped), count: 1000) { $0.method == "PATCH" }
        fixture.plan(.answer(Reply(status: 200)), count: 1000) { $0.method == "HEAD" }
        let snapshot = try await fixture.upload(bytes)
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .protocolViolation)
    }
}
