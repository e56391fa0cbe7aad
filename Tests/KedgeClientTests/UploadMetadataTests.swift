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

    @Test(arguments: [false, true])
    func `a repeated command sets the metadata of an upload that has not begun`(
        hasChanged: Bool
    ) async throws {
        let path = try fixture.write("source.bin", bytes)
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: path, options: options(path: "trip/a"))
        let content = hasChanged ? Array(bytes.dropLast(1000)) : bytes
        if hasChanged { try fixture.write("source.bin", content) }
        let again = try await client.enqueueUpload(path: path, options: options(path: "other/a"))
        #expect(again == id)
        let snapshot = try await client.run(id)
        fixture.expectUploaded(snapshot, content)
        #expect(fixture.sessions.map(\.metadata) == [[FilePath.metadataKey: "other/a"]])
    }

    @Test func `a changed file with other metadata is not continued with the earlier ones`()
        async throws
    {
        let path = try fixture.write("source.bin", bytes)
        let client = try await fixture.client()
        fixture.plan(.answer(Reply(problem: .badRequest))) { $0.path.hasSuffix("/chunks/1") }
        let id = try await client.enqueueUpload(path: path, options: options(path: "trip/a"))
        #expect(try await client.run(id).state == .failed)
        let content = Array(bytes.dropLast(1000))
        try fixture.write("source.bin", content)
        let again = try await client.enqueueUpload(path: path, options: options(path: "other/a"))
        let snapshot = try await client.run(again)
        fixture.expectUploaded(snapshot, content)
        let finished = fixture.sessions.filter { $0.state == .completed }
        #expect(finished.map(\.metadata) == [[FilePath.metadataKey: "other/a"]])
    }
}
