import HTTPTypes
import KedgeClient
import KedgeLocks
import KedgeModel
import Testing

/// Waits, timeouts and the counting of attempts in tus and IETF resumable uploads.
@Suite(.timeLimit(.minutes(2)))
struct SequentialUploadTimeoutTests {
    private let bytes = TransferEnvironment.bytes(600_000)

    @Test(arguments: SequentialUploadEnvironment.protocols, [502, 503, 504])
    func `a reachable server that takes no bytes is not retried forever`(
        uploadProtocol: UploadProtocol, status: Int
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        fixture.plan(.answer(Reply(status: status)), count: 300) { $0.method == "PATCH" }
        let snapshot = try await fixture.upload(bytes)
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .unavailable)
        #expect(fixture.seen("PATCH").count == 12)
        // The bounds of the waits grow, so it is next to impossible that all waits are short.
        let longest = fixture.base.delays.withLock { $0.max() } ?? .zero
        #expect(longest > .seconds(1))
    }

    @Test(arguments: SequentialUploadEnvironment.protocols)
    func `a server that answers every request with 503 is waited for`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        let counter = Counter()
        fixture.plan(.answer(Reply(status: 503)), count: 60) { _ in counter.next() >= 2 }
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
    }

    @Test func `limits that keep changing do not make the client start again with large pieces`()
        async throws
    {
        let fixture = try SequentialUploadEnvironment(.resumableUpload)
        let counter = Counter()
        fixture.plan(
            .rewrite { reply in
                let most = 8 << 20 - counter.next()
                reply.fields[.named("Upload-Limit")] = "max-append-size=\(most)"
            }, count: 1000
        ) { $0.method == "HEAD" }
        fixture.plan(.answer(Reply(status: 413)), count: 500) { $0.method == "PATCH" }
        let snapshot = try await fixture.upload(bytes)
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .fileTooLarge)
        #expect(fixture.seen("PATCH").count < 20)
    }

    @Test func `a server that refuses the sizes that it asks for is not retried forever`()
        async throws
    {
        let fixture = try SequentialUploadEnvironment(.resumableUpload)
        // Each limit is a little less than the size that the server just refused.
        let least = Int(AdaptiveBodySize.initial) - 1
        fixture.set { $0.limit = "min-append-size=\(least)" }
        let counter = Counter()
        fixture.plan(
            .rewrite { reply in
                let next = least - 1 - counter.next()
                reply.fields[.named("Upload-Limit")] = "min-append-size=\(next)"
            }, count: 1000
        ) { $0.method == "HEAD" }
        fixture.plan(.answer(Reply(status: 413)), count: 500) { $0.method == "PATCH" }
        let snapshot = try await fixture.upload(bytes)
        #expect(snapshot.errorCode == .fileTooLarge)
        #expect((2..<20).contains(fixture.seen("PATCH").count))
    }

    @Test(arguments: SequentialUploadEnvironment.protocols, [500, 503, 429, 423, 408])
    func `the lookup of a finished upload is retryable when the server cannot answer it`(
        uploadProtocol: UploadProtocol, status: Int
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        let id = try await fixture.upload(bytes).id
        let client = try await fixture.client()
        let (path, options) = (
            fixture.base.path("source.bin"), UploadOptions(uploadProtocol: uploadProtocol)
        )
        fixture.plan(.answer(Reply(status: status))) { $0.method == "HEAD" }
        let error = await #expect(throws: TransferError.self) {
            try await client.finishedUpload(path: path, options: options)
        }
        #expect(error?.isRetryable == true)
        #expect(try await client.finishedUpload(path: path, options: options)?.id == id)
    }

    @Test(arguments: SequentialUploadEnvironment.protocols, [404, 410, 405, 200, 303])
    func `a finished upload that the server no longer has is not found`(
        uploadProtocol: UploadProtocol, status: Int
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        _ = try await fixture.upload(bytes)
        let client = try await fixture.client()
        fixture.plan(.answer(Reply(status: status)), count: 10) { $0.method == "HEAD" }
        #expect(
            try await client.finishedUpload(
                path: fixture.base.path("source.bin"),
                options: UploadOptions(uploadProtocol: uploadProtocol))
                == nil)
    }

    @Test(
        arguments: SequentialUploadEnvironment.protocols,
        ["circle", "certificate", "token", "offline"])
    func `only a transient failure of the lookup is reported as retryable`(
        uploadProtocol: UploadProtocol, trouble: String
    ) async throws {
        let fixture = try SequentialUploadEnvironment(uploadProtocol)
        _ = try await fixture.upload(bytes)
        let client = try await fixture.client()
        let faults: [String: Fault] = [
            "circle": .answer(Reply(status: 307, fields: [.location: "/files/1"])),
            "certificate": .fail(.tls), "token": .answer(Reply(status: 401)),
            "offline": .offline,
        ]
        fixture.plan(try #require(faults[trouble]), count: 100) { $0.method == "HEAD" }
        let error = await #expect(throws: TransferError.self) {
            try await client.finishedUpload(
                path: fixture.base.path("source.bin"),
                options: UploadOptions(uploadProtocol: uploadProtocol))
        }
        #expect(error?.isRetryable == (trouble == "offline"))
    }

    @Test
    func `in the native protocol only a transient failure of the lookup is reported as retryable`()
        async throws
    {
        let fixture = try TransferEnvironment()
        let path = try fixture.write("source.bin", bytes)
        let client = try await fixture.client()
        _ = try await client.run(try await client.enqueueUpload(path: path))
        let faults: [(Fault, Bool)] = [
            (.fail(.tls), false), (.offline, true), (.answer(Reply(status: 503)), true),
        ]
        for (fault, isRetryable) in faults {
            fixture.plan(fault)
            let error = await #expect(throws: TransferError.self) {
                try await client.finishedUpload(path: path)
            }
            #expect(error?.isRetryable == isRetryable)
        }
    }

    /// Makes a server whose answer to the creation does not report the upload's state.
    private func fixtureWithoutFirstState() throws -> SequentialUploadEnvironment {
        let fixture = try SequentialUploadEnvironment(.resumableUpload)
        fixture.plan(.rewrite { $0.fields[.named("Upload-Complete")] = nil }, count: 1000) {
            $0.method == "POST"
        }
        return fixture
    }

    @Test(arguments: [nil, 423, 429, 500, 503])
    func `the state of a created upload is requested until it is known, and no other is created`(
        status: Int?
    ) async throws {
        let fixture = try fixtureWithoutFirstState()
        let fault = status.map { Fault.answer(Reply(status: $0)) } ?? .offline
        fixture.plan(fault, count: 7) { $0.method == "HEAD" }
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
        #expect(fixture.seen("POST").count == 1)
    }

    @Test(arguments: [200, 404, 405])
    func `a created resource that is no upload fails the transfer at once and is forgotten`(
        status: Int
    ) async throws {
        let fixture = try fixtureWithoutFirstState()
        fixture.plan(.answer(Reply(status: status)), count: 1000) { $0.method == "HEAD" }
        let snapshot = try await fixture.upload(bytes)
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .uploadVersionUnsupported)
        #expect(snapshot.uploadURL == nil)
        #expect(fixture.seen("POST").count == 1)
        #expect(fixture.seen("HEAD").count == 1)
    }

    // R139.
    @Test func `the pieces of a chunk do not count as attempts`() async throws {
        let fixture = try SequentialUploadEnvironment(.resumableUpload)
        fixture.set { $0.limit = "max-append-size=16384" }
        let snapshot = try await fixture.upload(bytes)
        fixture.expectUploaded(snapshot, bytes)
        let diagnosis = try await fixture.client().diagnose(snapshot.id)
        #expect(diagnosis.repeatedChunks == [:])
        #expect(diagnosis.totalAttempts == diagnosis.totalChunks)
    }

    // R139.
    @Test(arguments: ["idle", "busy", "offset"])
    func `a piece that brought no bytes counts as one attempt`(kind: String) async throws {
        let fixture = try SequentialUploadEnvironment(.resumableUpload)
        let replies = [
            "idle": Reply(
                status: 204, fields: [.uploadOffset: "0", .named("Upload-Complete"): "?0"]),
            "busy": Reply(status: 503), "offset": Reply(status: 409),
        ]
        fixture.plan(.answer(try #require(replies[kind]))) { $0.method == "PATCH" }
        let snapshot = try await fixture.upload(bytes)
        fixture.expectUploaded(snapshot, bytes)
        #expect(try await fixture.client().diagnose(snapshot.id).repeatedChunks == [0: 2])
    }
}
