import KedgeEngine
import KedgeModel
import KedgeS3
import KedgeTesting
import Testing

/// R2: findings about names in a bucket, and about entries that end during the check.
@Suite(.timeLimit(.minutes(2))) struct S3InspectionEntryTests {
    private func withEnvironment(
        _ body: (inout S3InspectionEnvironment) async throws -> Void
    ) async throws {
        var fixture = try await S3InspectionEnvironment()
        try await body(&fixture)
        await fixture.store.close()
    }

    @Test func `objects, pieces and uploads without a row are reported and kept`()
        async throws
    {
        try await withEnvironment { fixture in
            let object = try await fixture.saved(byteCount: 6000)
            let (upload, _) = try await fixture.interrupted()
            let leaked = StagingKey(.random())
            let (client, keys) = (fixture.store.client, fixture.store.keys)
            for _ in 0..<2 { _ = try await client.createUpload(keys.assembled(leaked)) }
            let found = try await fixture.check()
            #expect(Set(found.map(\.kind)) == [.stagingOrphaned])
            #expect(Set(found.map(\.id)) == [object.key.text, upload.key.text, leaked.text])
            // The interrupted upload has pieces and a multipart upload.
            #expect(found.count == 4)
            #expect(try await fixture.check() == found)
        }
    }

    @Test(arguments: [
        "stray", "objects/stray", "objects/\(SessionID.random())/more",
        "objects/\(SessionID.random())-00", "pieces/\(SessionID.random())/stray",
        "pieces/\(SessionID.random())", "health/stray",
    ])
    func `a name that the service never uses is reported`(name: String) async throws {
        try await withEnvironment { fixture in
            let object = fixture.store.keys.prefix + name
            _ = try await fixture.store.client.putObject(object, S3Body([1]))
            let found = try await fixture.check()
            #expect(found.map(\.kind) == [.nameUnknown])
            #expect(found.map(\.id) == [object])
        }
    }

    @Test func `a leftover probe is a notice, not a fault`() async throws {
        try await withEnvironment { fixture in
            let (object, upload) = (fixture.store.keys.probe(), fixture.store.keys.probe())
            _ = try await fixture.store.client.putObject(object, S3Body([1]))
            _ = try await fixture.store.client.createUpload(upload)
            let found = try await fixture.check()
            #expect(found.map(\.kind) == [.leftover, .leftover])
            #expect(found.map(\.id) == [object, upload])
            #expect(found.allSatisfy { $0.isNotice })
        }
    }

    @Test func `sessions and files that end during the check are no fault`() async throws {
        try await withEnvironment { fixture in
            let (upload, _) = try await fixture.addInterrupted()
            let (_, file) = try await fixture.addFile(byteCount: 6000)
            try await fixture.fixture.sweep(upload.key, in: fixture.store)
            try await fixture.store.client.deleteObject(try #require(file.location))
            #expect(try await fixture.check().map(\.kind) == [.stagingMissing, .blobMissing])
            fixture.rows.hasEnded = true
            #expect(try await fixture.check() == [])
        }
    }

    @Test func `bytes that are removed before their row are no fault`() async throws {
        try await withEnvironment { fixture in
            _ = try await fixture.saved(byteCount: 6000)
            _ = try await fixture.interrupted()
            let (client, keys) = (fixture.store.client, fixture.store.keys)
            let (store, records) = (fixture.store, fixture.fixture.records)
            #expect(try await fixture.check().count == 3)
            fixture.rows.willDisown = { key in
                try await store.removeStaging(
                    key, state: records.stagingState(of: key), keeping: nil)
            }
            #expect(try await fixture.check() == [])
            #expect(try await client.listObjects(prefix: keys.prefix, after: nil).keys == [])
        }
    }
}
