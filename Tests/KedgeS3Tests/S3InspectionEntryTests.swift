import KedgeEngine
import KedgeModel
import KedgeS3
import KedgeTesting
import Testing

/// R2: findings about names in a bucket, and about entries that end during the check.
@Suite(.timeLimit(.minutes(2))) struct S3InspectionEntryTests {
    private func withPlace(
        _ body: (inout S3InspectionPlace) async throws -> Void
    ) async throws {
        var place = try await S3InspectionPlace()
        try await body(&place)
        await place.store.close()
    }

    @Test func `objects, pieces and uploads without a row are reported and kept`()
        async throws
    {
        try await withPlace { place in
            let object = try await place.saved(byteCount: 6000)
            let (upload, _) = try await place.interrupted()
            let leaked = StagingKey(.random())
            let (client, keys) = (place.store.client, place.store.keys)
            for _ in 0..<2 { _ = try await client.createUpload(keys.assembled(leaked)) }
            let found = try await place.check()
            #expect(Set(found.map(\.kind)) == [.stagingOrphaned])
            #expect(Set(found.map(\.id)) == [object.key.text, upload.key.text, leaked.text])
            // The interrupted upload has pieces and a multipart upload.
            #expect(found.count == 4)
            #expect(try await place.check() == found)
        }
    }

    @Test(arguments: [
        "stray", "objects/stray", "objects/\(SessionID.random())/more",
        "objects/\(SessionID.random())-00", "pieces/\(SessionID.random())/stray",
        "pieces/\(SessionID.random())", "health/stray",
    ])
    func `a name that the service never uses is reported`(name: String) async throws {
        try await withPlace { place in
            let object = place.store.keys.prefix + name
            _ = try await place.store.client.putObject(object, S3Body([1]))
            let found = try await place.check()
            #expect(found.map(\.kind) == [.nameUnknown])
            #expect(found.map(\.id) == [object])
        }
    }

    @Test func `a leftover probe is a notice, not a fault`() async throws {
        try await withPlace { place in
            let (object, upload) = (place.store.keys.probe(), place.store.keys.probe())
            _ = try await place.store.client.putObject(object, S3Body([1]))
            _ = try await place.store.client.createUpload(upload)
            let found = try await place.check()
            #expect(found.map(\.kind) == [.leftover, .leftover])
            #expect(found.map(\.id) == [object, upload])
            #expect(found.allSatisfy { $0.isNotice })
        }
    }

    @Test func `sessions and files that end during the check are no fault`() async throws {
        try await withPlace { place in
            let (upload, _) = try await place.addInterrupted()
            let (_, file) = try await place.addFile(byteCount: 6000)
            try await place.place.sweep(upload.key, in: place.store)
            try await place.store.client.deleteObject(try #require(file.location))
            #expect(try await place.check().map(\.kind) == [.stagingMissing, .blobMissing])
            place.rows.hasEnded = true
            #expect(try await place.check() == [])
        }
    }

    @Test func `bytes that are removed before their row are no fault`() async throws {
        try await withPlace { place in
            _ = try await place.saved(byteCount: 6000)
            _ = try await place.interrupted()
            let (client, keys) = (place.store.client, place.store.keys)
            let (store, records) = (place.store, place.place.records)
            #expect(try await place.check().count == 3)
            place.rows.willDisown = { key in
                try await store.removeStaging(
                    key, state: records.stagingState(of: key), keeping: nil)
            }
            #expect(try await place.check() == [])
            #expect(try await client.listObjects(prefix: keys.prefix, after: nil).keys == [])
        }
    }
}
