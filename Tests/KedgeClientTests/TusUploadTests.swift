import HTTPTypes
import KedgeClient
import KedgeHash
import KedgeModel
import Testing

/// Behaviour that only tus has.
@Suite(.timeLimit(.minutes(1)))
struct TusUploadTests {
    private let fixture: SequentialUploadEnvironment
    private let bytes = TransferEnvironment.bytes(600_000)
    private let checksum = HTTPField.Name.named("Upload-Checksum")

    init() throws { fixture = try SequentialUploadEnvironment(.tus) }

    @Test func `an upload is begun with its size, name and type`() async throws {
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
        let creation = try #require(fixture.seen("POST").first)
        #expect(creation.fields[.uploadLength] == "600000")
        #expect(creation.fields[.named("Tus-Resumable")] == "1.0.0")
        let metadata = try #require(creation.fields[.named("Upload-Metadata")])
        #expect(
            metadata == "filename \(Base64.encode(Array("source.bin".utf8)))"
                + ",filetype \(Base64.encode(Array("application/octet-stream".utf8)))")
        #expect(fixture.seen("OPTIONS").allSatisfy { $0.fields[.named("Tus-Resumable")] == nil })
    }

    @Test(
        arguments: [
            ("sha1,sha256", "sha256 "), ("md5,sha1", "sha1 "), ("md5,crc32c", nil), (nil, nil),
        ] as [(String?, String?)])
    func `the best checksum that the server offers is sent`(
        offered: String?, used: String?
    ) async throws {
        fixture.set { $0.algorithms = offered }
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
        for patch in fixture.seen("PATCH") {
            #expect(
                patch.fields[checksum].map { $0.prefix { $0 != " " } + " " } == used.map { $0[...] }
            )
        }
    }

    @Test func `no checksum is sent without the checksum extension`() async throws {
        fixture.set { $0.extensions = "creation" }
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
        #expect(fixture.seen("PATCH").allSatisfy { $0.fields[checksum] == nil })
    }

    @Test func `an upload is tried on a server that does not answer OPTIONS`() async throws {
        fixture.plan(.answer(Reply(status: 405)), count: 10) { $0.method == "OPTIONS" }
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
    }

    @Test func `a server of other tus versions gets no upload`() async throws {
        fixture.plan(.rewrite { $0.fields[.named("Tus-Version")] = "0.2.2, 2.0.0" }) {
            $0.method == "OPTIONS"
        }
        let snapshot = try await fixture.upload(bytes)
        #expect(snapshot.errorCode == .uploadVersionUnsupported)
        #expect(fixture.seen("POST").isEmpty)
    }

    @Test func `no upload is created for a file larger than the server's limit`() async throws {
        fixture.set { $0.maxSize = 599_999 }
        let snapshot = try await fixture.upload(bytes)
        #expect(snapshot.errorCode == .fileTooLarge)
        #expect(fixture.seen("POST").isEmpty)
    }

    @Test func `no upload is removed from a server without the termination extension`() async throws
    {
        fixture.set { $0.extensions = "creation" }
        fixture.plan(.answer(Reply(status: 400)), count: 10) { $0.method == "PATCH" }
        let id = try await fixture.upload(bytes).id
        try await fixture.client().cancel(id)
        #expect(fixture.seen("DELETE").isEmpty)
        #expect(fixture.uploads.count == 1)
    }

    @Test func `the slash at the end of the creation URL is kept`()
        async throws
    {
        let snapshot = try await fixture.upload(bytes)
        #expect(snapshot.serverURL == FakeUploadServer.creationURL)
        #expect(fixture.seen("POST").allSatisfy { $0.url == FakeUploadServer.creationURL })
    }

    @Test func `an upload survives an answer to PATCH without an offset`() async throws {
        fixture.plan(.rewrite { $0.fields[.uploadOffset] = nil }) { $0.method == "PATCH" }
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
    }

    @Test func `a digest of an unfinished upload is not taken for the file's`() async throws {
        let large = TransferEnvironment.bytes(9 << 20)
        let digest = DigestHeader.rfc9530(SHA256Hasher.digest(of: [1]))
        fixture.plan(.rewrite { $0.fields[.reprDigest] = digest }) { $0.method == "PATCH" }
        let snapshot = try await fixture.upload(large)
        fixture.expectUploaded(snapshot, large)
        #expect(snapshot.verification == .unverified)
    }

    @Test(arguments: [0, 600_000])
    func `a maximum size that is zero or sufficient does not prevent an upload`(
        size: Int64
    ) async throws {
        fixture.set { $0.maxSize = size }
        fixture.expectUploaded(try await fixture.upload(bytes), bytes)
    }

    @Test func `uploads of a file in different protocols are separate transfers`() async throws {
        let path = try fixture.base.write("source.bin", bytes)
        let client = try await fixture.client()
        let tus = try await fixture.enqueue(client)
        let other = try await client.enqueueUpload(
            path: path, options: UploadOptions(uploadProtocol: .resumableUpload))
        let native = try await client.enqueueUpload(path: path)
        #expect(Set([tus, other, native]).count == 3)
        #expect(try await fixture.enqueue(client) == tus)
    }
}
