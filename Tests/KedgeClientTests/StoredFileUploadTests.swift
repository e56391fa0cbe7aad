import HTTPTypes
import KedgeClient
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
}
