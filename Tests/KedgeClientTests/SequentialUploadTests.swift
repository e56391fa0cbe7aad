import HTTPTypes
import KedgeClient
import KedgeHash
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// Behaviour that tus and IETF resumable uploads share, against a server that is not Kedge.
@Suite(.timeLimit(.minutes(2)))
struct SequentialUploadTests {
    private let bytes = TransferEnvironment.bytes(600_000)
    /// More bytes than the first request sends.
    private let large = TransferEnvironment.bytes(9 << 20)

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `a file arrives as it is and is read once`(uploadProtocol: UploadProtocol) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        let snapshot = try await fixture.upload(large)
        fixture.expectUploaded(snapshot, large)
        #expect(snapshot.verification == .unverified)
        #expect(snapshot.uploadProtocol == uploadProtocol)
        #expect(snapshot.remoteFileID == nil)
        let read = fixture.base.files.readByteCount(fixture.base.path("source.bin"))
        #expect(read < Int64(large.count) * 3 / 2)
        #expect(fixture.seen("PATCH").count > 1)
        let state = fixture.server.state.withLock { $0 }
        #expect(state.seen.allSatisfy { $0.fields[.authorization] == "Bearer secret" })
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `a file of no bytes completes`(uploadProtocol: UploadProtocol) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.expectUploaded(try await fixture.upload([]), [])
    }

    // R133.
    @Test(
        arguments: SequentialUploadEnvironment.protocols,
        ["lost answer", "dropped", "stalled", "offline"])
    func `any one request may be lost, before or after it was carried out`(
        uploadProtocol: UploadProtocol, kind: String
    ) async throws {
        let faults: [String: Fault] = [
            "lost answer": .loseResponse, "dropped": .fail(.dropped),
            "stalled": .fail(.stalled), "offline": .offline,
        ]
        let fault = try #require(faults[kind])
        for position in 0..<5 {
            let fixture = try SequentialUploadEnvironment(uploadProtocol)
            let counter = Counter()
            fixture.plan(fault) { _ in counter.next() == position }
            let snapshot = try await fixture.upload(bytes)
            fixture.expectUploaded(snapshot, bytes)
        }
    }

    // R132.
    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `an upload over a link that dies every few kilobytes finishes if the server keeps bytes`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.plan(.dropBody(after: 9_000), count: 60) { $0.method == "PATCH" }
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `pieces shrink until they get through to a server that discards broken requests`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.set { $0.keepsBrokenBodies = false }
        fixture.plan(.dropBody(after: 100_000), count: 1000) { $0.method == "PATCH" }
        let snapshot = try await fixture.upload(bytes)
        fixture.expectUploaded(snapshot, bytes)
        #expect(fixture.seen("PATCH").contains { (1...100_000).contains($0.carriedByteCount) })
    }

    // R1, R6, R105, R134.
    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `after a kill the next client continues at the server's offset`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        try fixture.base.write("source.bin", large)
        let (gate, counter) = (Gate(), Counter())
        fixture.plan(.wait(gate), count: 100) { $0.method == "PATCH" && counter.next() >= 1 }
        let id: TransferID
        do {
            let client = try await fixture.client()
            id = try await fixture.enqueue(client)
            let run = Task { try await client.run(id) }
            await gate.waitForArrival()
            run.cancel()
            #expect(try await run.value.pauseReason == .shutdown)
        }
        gate.open()
        // More bytes arrived than were acknowledged, as with a kill between the two.
        fixture.set { state in
            state.faults = []
            let kept = state.uploads["1"]?.bytes.count ?? 0
            state.uploads["1"]?.bytes += large[kept..<kept + 1000]
        }
        let next = try await fixture.client()
        #expect(try await fixture.enqueue(next) == id)
        #expect(try await next.transfer(id).bytesTransferred == AdaptiveBodySize.initial)
        let snapshot = try await next.run(id)
        fixture.expectUploaded(snapshot, large)
        #expect(fixture.uploads.count == 1)
        #expect(
            fixture.seen("PATCH").contains {
                $0.fields[.uploadOffset] == "\(AdaptiveBodySize.initial + 1000)"
            })
    }

    @Test(arguments: SequentialUploadEnvironment.protocols, [404, 410])
    func `an upload that the server no longer has is begun anew`(
        uploadProtocol: UploadProtocol, status: Int
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        let counter = Counter()
        fixture.plan(.answer(Reply(status: status))) {
            $0.method == "PATCH" && counter.next() == 1
        }
        fixture.expectUploaded(try await fixture.upload(large), large)
        #expect(fixture.uploads.count == 2)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `a server that forgets every upload is not retried forever`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.plan(.answer(Reply(status: 404)), count: 1000) { $0.method == "PATCH" }
        let snapshot = try await fixture.upload(bytes)
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .sessionNotFound)
        #expect(fixture.seen("POST").count == 5)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `a locked upload is waited for as long as the server asks`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.plan(
            .answer(Reply(status: 423, fields: [.retryAfter: "7"])), count: 3
        ) { $0.method == "PATCH" }
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
        #expect(fixture.base.delays.withLock { $0.filter { $0 >= .seconds(7) }.count } == 3)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `a piece that arrives damaged is sent again, but not forever`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.plan(.corruptBody, count: 2) { $0.method == "PATCH" }
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
        let worse = try SequentialUploadEnvironment(uploadProtocol)
        worse.plan(.corruptBody, count: 1000) { $0.method == "PATCH" }
        let snapshot = try await worse.upload(bytes)
        #expect(snapshot.state == .failed)
        #expect([.uploadChecksumMismatch, .chunkHashMismatch].contains(snapshot.errorCode))
        #expect(worse.seen("PATCH").count <= 40)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `an upload is verified when the server reports the same digest`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.set { $0.digest = SHA256Hasher.digest(of: bytes) }
        let snapshot = try await fixture.upload(bytes)
        fixture.expectUploaded(snapshot, bytes)
        #expect(snapshot.verification == .sha256)
    }

    // R79, R119.
    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `an upload starts over once when the server reports another digest`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.set { $0.digest = SHA256Hasher.digest(of: [1]) }
        let snapshot = try await fixture.upload(bytes)
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .integrityMismatch)
        #expect(fixture.seen("POST").count == 2)
        #expect(fixture.seen("DELETE").count == 2)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `an upload is complete when the server forgets it after its last byte`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.set { $0.forgetsFinished = true }
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
        #expect(fixture.seen("POST").count == 1)
    }

    // R100.
    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `a file that changes is uploaded anew, and its old upload is removed`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        // The request in flight when the file changes is not the last one.
        try fixture.base.write("source.bin", TransferEnvironment.bytes(13 << 20))
        let gate = Gate()
        let counter = Counter()
        fixture.plan(.wait(gate)) { $0.method == "PATCH" && counter.next() == 1 }
        let client = try await fixture.client()
        let id = try await fixture.enqueue(client)
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        try fixture.base.write("source.bin", bytes)
        gate.open()
        let snapshot = try await run.value
        fixture.expectUploaded(snapshot, bytes)
        #expect(snapshot.replaces == id)
        #expect(try await client.transfer(id).errorCode == .fileChanged)
        #expect(fixture.uploads.count == 1)
    }

    // R109.
    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `cancelling removes the upload from the server`(uploadProtocol: UploadProtocol)
        async throws
    {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        try fixture.base.write("source.bin", large)
        let (gate, counter) = (Gate(), Counter())
        fixture.plan(.wait(gate), count: 100) { $0.method == "PATCH" && counter.next() >= 1 }
        let client = try await fixture.client()
        let id = try await fixture.enqueue(client)
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        try await client.cancel(id)
        #expect(try await run.value.state == .canceled)
        #expect(fixture.uploads.isEmpty)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `a finished upload is found while the server has it`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        let snapshot = try await fixture.upload(bytes)
        let client = try await fixture.client()
        let (path, options) = (
            fixture.base.path("source.bin"), UploadOptions(uploadProtocol: uploadProtocol)
        )
        #expect(
            try await client.finishedUpload(path: path, options: options)?.id == snapshot.id)
        fixture.set { $0.uploads = [:] }
        #expect(try await client.finishedUpload(path: path, options: options) == nil)
    }
}
