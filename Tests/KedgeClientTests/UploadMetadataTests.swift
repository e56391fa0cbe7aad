import Foundation
import KedgeClient
import KedgeModel
import KedgeTesting
import Testing

/// Metadata of uploads: two uploads of one file with different metadata are different files.
@Suite(.timeLimit(.minutes(1)))
struct UploadMetadataTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(200_000)

    init() throws { fixture = try TransferEnvironment() }

    private func options(path: String) -> UploadOptions {
        UploadOptions(metadata: [FilePath.metadataKey: path])
    }

    @Test func `an unfinished upload for another path is not canceled with the present file`()
        async throws
    {
        let path = try fixture.write("source.bin", bytes)
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: path, options: options(path: "trip/a"))
        try await client.cancelUnfinishedUpload(path: path, options: options(path: "other/a"))
        #expect(try await client.transfer(id).state == .queued)
        try await client.cancelUnfinishedUpload(path: path, options: options(path: "trip/a"))
        #expect(try await client.transfer(id).state == .canceled)
    }
}
