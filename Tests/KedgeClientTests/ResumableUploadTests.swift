import HTTPTypes
import KedgeClient
import KedgeHash
import KedgeModel
import Testing

/// Behaviour that only IETF resumable uploads have.
@Suite(.timeLimit(.minutes(1)))
struct ResumableUploadTests {
    private let fixture: SequentialUploadEnvironment
    private let bytes = TransferEnvironment.bytes(600_000)
    private let version = HTTPField.Name.named("Upload-Draft-Interop-Version")

    init() throws { fixture = try SequentialUploadEnvironment(.resumableUpload) }

    @Test func `an upload is begun with an empty body, its size, name and type`() async throws {
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
        let creation = try #require(fixture.seen("POST").first)
        #expect(creation.carriedByteCount == 0)
        #expect(creation.fields[.uploadLength] == "600000")
        #expect(creation.fields[.named("Upload-Complete")] == "?0")
        #expect(creation.fields[version] == "9")
        #expect(
            creation.fields[.contentDisposition]
                == "attachment; filename=\"source.bin\"; filename*=UTF-8''source.bin")
        let last = try #require(fixture.seen("PATCH").last)
        #expect(last.fields[.named("Upload-Complete")] == "?1")
        #expect(last.fields[.contentDigest] != nil)
    }

    @Test(arguments: [9, 8, 7, 6, 5, 4, 3, nil])
    func `the newest draft version that the server speaks is used`(interop: Int?) async throws {
        fixture.set { $0.versions = [interop] }
        let snapshot = try await fixture.upload(bytes)
        fixture.expectUploaded(snapshot, bytes)
        let spoken = interop.map { "\($0)" }
        #expect(fixture.seen("PATCH").allSatisfy { $0.fields[version] == spoken })
        #expect(fixture.seen("HEAD").allSatisfy { $0.fields[version] == spoken })
        #expect(fixture.uploads.count == 1)
    }

    @Test func `a resumed upload continues in the version in which it began`() async throws {
        fixture.set { $0.versions = [6] }
        fixture.plan(.answer(Reply(status: 400)), count: 1) { $0.method == "PATCH" }
        let failed = try await fixture.upload(bytes)
        #expect(failed.state == .failed)
        let posts = fixture.seen("POST").count
        let client = try await fixture.client()
        let snapshot = try await client.run(try await fixture.enqueue(client))
        fixture.expectUploaded(snapshot, bytes)
        #expect(snapshot.id == failed.id)
        #expect(fixture.seen("POST").count == posts)
    }

    @Test func `a server that takes the creation for a complete file is asked once`() async throws {
        fixture.set { $0.isPlain = true }
        let snapshot = try await fixture.upload(bytes)
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .uploadVersionUnsupported)
        #expect(fixture.seen("POST").count == 1)
    }

    @Test func `pieces stay within the server's limits`() async throws {
        fixture.set { $0.limit = "max-append-size=100000, min-append-size=90000, max-age=5" }
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
        let sizes = fixture.seen("PATCH").map(\.carriedByteCount)
        #expect(sizes.allSatisfy { $0 <= 100_000 })
        #expect(sizes.dropLast().allSatisfy { $0 >= 90_000 })
    }

    @Test func `pieces that have to be large are sent from the file`() async throws {
        let large = TransferEnvironment.bytes(22 << 20)
        fixture.set { $0.limit = "min-append-size=\(10 << 20)" }
        fixture.expectUploaded(try await fixture.upload(large), large)
        #expect(fixture.seen("PATCH").map(\.carriedByteCount) == [10 << 20, 10 << 20, 2 << 20])
    }

    @Test func `no bytes are sent of a file larger than the server's limit`() async throws {
        fixture.set { $0.limit = "max-size=599999" }
        let snapshot = try await fixture.upload(bytes)
        #expect(snapshot.errorCode == .fileTooLarge)
        #expect(fixture.seen("PATCH").isEmpty)
    }

    @Test func `an incomplete upload that has all bytes is completed by an empty request`()
        async throws
    {
        fixture.plan(.answer(Reply(status: 400))) { $0.method == "PATCH" }
        #expect(try await fixture.upload(bytes).state == .failed)
        fixture.set { $0.uploads["1"]?.bytes = bytes }
        let client = try await fixture.client()
        fixture.expectUploaded(try await client.run(try await fixture.enqueue(client)), bytes)
        let last = try #require(fixture.seen("PATCH").last)
        #expect(last.carriedByteCount == 0)
        #expect(last.fields[.uploadOffset] == "600000")
    }
}
