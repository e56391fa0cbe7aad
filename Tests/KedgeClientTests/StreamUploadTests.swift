import KedgeClient
import KedgeModel
import KedgeTesting
import Testing

/// Uploads of streams to a server in memory.
@Suite(.timeLimit(.minutes(1)))
struct StreamUploadTests {
    private let fixture: SequentialUploadEnvironment

    init() throws { fixture = try SequentialUploadEnvironment(.resumableUpload) }

    private func client() async throws -> TransferClient {
        try await fixture.client { $0.serverURL = "http://up.test" }
    }

    /// Uploads a stream of one byte.
    private func upload(_ client: TransferClient) async throws -> StreamResult {
        let callCount = Shared(0)
        return try await client.uploadStream(
            StreamUploadOptions(fileName: "x"),
            read: { buffer in
                guard callCount.increment() == 1 else { return 0 }
                buffer[0] = 7
                return 1
            })
    }

    @Test func `a stream becomes a file`() async throws {
        let result = try await upload(try await client())
        #expect(result.byteCount == 1)
        #expect(fixture.uploads.values.map(\.bytes) == [[7]])
        #expect(fixture.uploads.values.allSatisfy { $0.isComplete })
    }

    /// Returns the error for a server that refuses the bytes.
    private func refusal(removalStatus: Int) async throws -> TransferError {
        fixture.plan(.answer(Reply(status: 403))) { $0.method == "PATCH" }
        fixture.plan(.answer(Reply(status: removalStatus))) { $0.method == "DELETE" }
        let client = try await client()
        let error = await #expect(throws: TransferError.self) { try await upload(client) }
        try await client.close()
        return try #require(error)
    }

    @Test func `an error of the server says whether the upload could be removed`() async throws {
        let removed = try await refusal(removalStatus: 204)
        let left = try await refusal(removalStatus: 500)
        #expect(removed.code == left.code)
        let texts = [removed, left].map { $0.explanation ?? "" }
        #expect(texts[0] != texts[1])
        #expect(fixture.seen("DELETE").count == 2)
    }
}
