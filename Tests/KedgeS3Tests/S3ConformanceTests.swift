import KedgeEngine
import KedgeS3
import KedgeTesting
import Testing

/// Serialized, because each test keeps the servers busy and has its own time limit.
@Suite(.serialized) struct S3ConformanceTests {
    @Test(
        .timeLimit(.minutes(2)), arguments: ByteStoreConformance.all, SharedServers.Kind.allCases)
    func `the S3 store keeps each promise of the conformance suite`(
        _ promise: ByteStoreConformance.Case, on kind: SharedServers.Kind
    ) async throws {
        let fixture = try S3Environment(on: await kind.server)
        try await promise.run { try fixture.open() }
    }

    @Test(.timeLimit(.minutes(2)), arguments: SharedServers.Kind.allCases)
    func `removed uploads and files leave nothing in the bucket`(
        on kind: SharedServers.Kind
    ) async throws {
        let fixture = try S3Environment(on: await kind.server)
        let store = try fixture.open()
        var upload = StagedUpload(byteCount: StagedUpload.chunkByteCount + 1000)
        let area = try await store.openStaging(upload.key)
        try await upload.write(0..<500, ofChunk: 1, to: area)
        let partial = try await area.savePartial(upload.range(1, byteCount: 500), after: nil)
        try await upload.save(0, in: area)
        // As left by a node that died before it recorded its upload.
        _ = try await store.client.createUpload(store.keys.assembled(upload.key))
        try await upload.write(500..<1000, ofChunk: 1, to: area)
        try await upload.saveWritten(1, in: area, after: partial)
        await area.close()
        let name = try await upload.promote(in: store)
        try await fixture.sweep(upload.key, in: store, keeping: name.location)
        #expect(try await Self.keys(in: store) == [name.location])
        #expect(
            try await store.client.listUploads(prefix: fixture.prefix, after: nil).uploads.isEmpty)
        #expect(try await store.content(of: name) == upload.content)
        try await fixture.sweep(upload.key, in: store)
        #expect(try await Self.keys(in: store) == [])
        await store.close()
        #expect(try fixture.spool.openDescriptorCount() == 0)
    }

    @Test(.timeLimit(.minutes(2)), arguments: SharedServers.Kind.allCases)
    func `a presigned URL serves the bytes with the requested fields`(
        on kind: SharedServers.Kind
    ) async throws {
        var fixture = try S3Environment(on: await kind.server)
        fixture.parameters = "&redirect=on"
        let store = try fixture.open()
        var upload = StagedUpload(byteCount: 1000)
        try await upload.saveAll(in: store)
        let name = try await upload.promote(in: store)
        let url = try #require(
            try await store.publicURL(
                of: name,
                responseFields: [
                    "Content-Disposition": "attachment; filename=\"a b\"",
                    "Content-Type": "text/x-kedge", "X-Other": "ignored",
                ]))
        let answer = try await PlainRequest.get(url)
        #expect(answer.body == upload.content)
        #expect(answer.fields["content-type"]?.hasPrefix("text/x-kedge") == true)
        #expect(answer.fields["content-disposition"] == "attachment; filename=\"a b\"")
        try await fixture.sweep(upload.key, in: store)
        await store.close()
    }

    private static func keys(in store: S3Store) async throws -> [String?] {
        try await store.client.listObjects(prefix: store.keys.prefix, after: nil).keys
    }
}
