import HTTPTypes
import KedgeClient
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// Uploads of bytes that the server offers to use, and what must not go wrong with the offer.
@Suite(.timeLimit(.minutes(1)))
struct StoredFileUploadTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(600_000)
    private let isChunk: @Sendable (FakeServer.Seen) -> Bool = { $0.method == "PUT" }
    private let isList: @Sendable (FakeServer.Seen) -> Bool = {
        $0.path.contains("/files/") && $0.path.hasSuffix("/chunks")
    }

    init() throws {
        fixture = try TransferEnvironment()
        fixture.server.state.withLock { $0.storedFileOfferCount = 1 }
    }

    private var sentChunkCount: Int { fixture.seen("PUT", "/chunks/").count }
    private var listCount: Int { fixture.seen("GET", "/files/").filter(isList).count }

    private func upload(_ options: UploadOptions = UploadOptions()) async throws -> TransferSnapshot
    {
        let client = try await fixture.client()
        let path = try fixture.write("source.bin", bytes)
        return try await client.run(
            try await client.enqueueUpload(path: path, options: options))
    }

    @Test func `bytes that the server has are not sent, unless all are to be sent`() async throws {
        _ = fixture.addFile(bytes)
        let snapshot = try await upload()
        fixture.expectUploaded(snapshot, bytes)
        #expect(snapshot.usedStoredBytes)
        #expect(sentChunkCount == 0)
        let again = try await upload(UploadOptions(sendsAllBytes: true))
        fixture.expectUploaded(again, bytes)
        #expect(!again.usedStoredBytes)
        #expect(sentChunkCount == 10)
    }

    @Test(arguments: [false, true])
    func `a repeated upload sends all bytes if that is asked for`(hasBegun: Bool) async throws {
        let path = try fixture.write("source.bin", bytes)
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: path)
        if hasBegun {
            fixture.plan(.answer(Reply(problem: .badRequest)), when: isChunk)
            #expect(try await client.run(id).state == .failed)
        }
        _ = fixture.addFile(bytes)
        let before = sentChunkCount
        let again = try await client.enqueueUpload(
            path: path, options: UploadOptions(sendsAllBytes: true))
        #expect(again == id)
        let upload = try await client.store.upload(id)
        #expect(upload.sendsAllBytes)
        #expect((upload.sessionID != nil) == hasBegun)
        fixture.expectUploaded(try await client.run(id), bytes)
        #expect(sentChunkCount > before)
        #expect(listCount == 0)
    }

    @Test func `all bytes of a changed file are sent if those of the file were to be sent`()
        async throws
    {
        let path = try fixture.write("source.bin", bytes)
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(
            path: path, options: UploadOptions(sendsAllBytes: true))
        let content = Array(bytes.dropLast(1))
        try fixture.write("source.bin", content)
        _ = fixture.addFile(content)
        let snapshot = try await client.run(id)
        #expect(snapshot.replaces == id)
        fixture.expectUploaded(snapshot, content)
        #expect(sentChunkCount == 10)
    }

    @Test func `an upload that is being compared says so`() async throws {
        _ = fixture.addFile(bytes)
        let gate = Gate()
        fixture.plan(.wait(gate), when: isList)
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: try fixture.write("source.bin", bytes))
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        let comparing = try await client.transfer(id)
        #expect(comparing.comparedBytes == 65_536)
        gate.open()
        let finished = try await run.value
        #expect(finished.comparedBytes == nil)
        #expect(comparing.state == .uploading)
        #expect(!comparing.message.hasPrefix("Uploading"))
    }

    /// Ways in which the list of digests cannot be had.
    enum Trouble: CaseIterable, Sendable {
        case offline, stalled, unavailable, forbidden, page, cut

        var fault: Fault {
            switch self {
            case .offline: .offline
            case .stalled: .fail(.stalled)
            case .unavailable: .answer(Reply(status: 503))
            case .forbidden: .answer(Reply(status: 403))
            case .page: .answer(Reply(status: 200, body: Array("<html>".utf8)))
            case .cut: .rewrite { $0.cutsAfter = 10 }
            }
        }
    }

    @Test(arguments: Trouble.allCases)
    func `a list of digests that cannot be had only means that the bytes are sent`(
        trouble: Trouble
    ) async throws {
        _ = fixture.addFile(bytes)
        fixture.plan(trouble.fault, count: 1_000_000, when: isList)
        fixture.expectUploaded(try await upload(), bytes)
        #expect(sentChunkCount == 10)
        #expect((1...3).contains(listCount))
    }

    @Test func `a file that is offered many times is compared once`() async throws {
        _ = fixture.addFile(bytes)
        fixture.server.state.withLock { $0.storedFileOfferCount = 9 }
        fixture.expectUploaded(try await upload(), bytes)
        #expect(sentChunkCount == 0)
        #expect(listCount == 1)
    }

    @Test func `at most four files are compared`() async throws {
        for place in 1...9 {
            var other = bytes
            other[bytes.count - place] ^= 1
            _ = fixture.addFile(other)
        }
        fixture.expectUploaded(try await upload(), bytes)
        #expect(listCount == 4)
    }

    @Test func `a session that is lost during the comparison costs no second one`() async throws {
        _ = fixture.addFile(bytes)
        fixture.plan(.answer(Reply(problem: .sessionNotFound)), count: 2) {
            $0.path.hasSuffix("/finalize")
        }
        fixture.expectUploaded(try await upload(), bytes)
        #expect(listCount == 1)
        #expect(fixture.sessions.count == 3)
        // Once for the comparison, once to send it.
        #expect(fixture.files.readByteCount(fixture.path("source.bin")) == 1_200_000)
    }

    @Test(arguments: [ErrorCode.integrityMismatch, .internalError, .forbidden])
    func `bytes are sent in another session if the server cannot use the stored ones`(
        code: ErrorCode
    ) async throws {
        _ = fixture.addFile(bytes)
        let first = Mutex("")
        fixture.plan(.answer(Reply(problem: code)), count: 100) { seen in
            guard seen.path.hasSuffix("/finalize") else { return false }
            return first.withLock { path in
                if path.isEmpty { path = seen.path }
                return path == seen.path
            }
        }
        let snapshot = try await upload()
        fixture.expectUploaded(snapshot, bytes)
        #expect(snapshot.integrityFailureCount == 0)
        #expect(sentChunkCount == 10)
    }
}
