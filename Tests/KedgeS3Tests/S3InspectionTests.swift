import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeS3
import KedgeTesting
import Testing

/// R2: findings of a check in a bucket.
@Suite(.timeLimit(.minutes(2))) struct S3InspectionTests {
    private func withPlace(
        _ body: (inout S3InspectionPlace) async throws -> Void
    ) async throws {
        var place = try await S3InspectionPlace()
        try await body(&place)
        await place.store.close()
    }

    @Test
    func `an undamaged bucket has no findings, and a scrub notes the bytes that it cannot read`()
        async throws
    {
        try await withPlace { place in
            let (_, session) = try await place.addInterrupted()
            _ = place.rows.add(try await place.saved(byteCount: 6000))
            let assembled = try await place.saved(byteCount: 25_000)
            try await place.store.assemble(assembled.file)
            _ = place.rows.add(assembled)
            _ = place.rows.add(SmallUpload(byteCount: 5000))
            for byteCount in [0, 6000, 25_000] {
                _ = try await place.addFile(byteCount: byteCount)
            }
            #expect(try await place.check() == [])
            let found = try await place.check(scrubbing: true)
            #expect(found.map(\.kind) == [.bytesUnchecked])
            #expect(found.map(\.id) == [session.id.text])
            #expect(found.allSatisfy { $0.isNotice })
        }
    }

    @Test func `a chunk whose part is missing is found`() async throws {
        try await withPlace { place in
            var (upload, partial) = try await place.interrupted()
            upload.chunks.append(
                CommittedChunk(
                    index: 2, byteCount: Int64(SmallUpload.chunkByteCount),
                    digest: Sample.digest("lost"), location: ChunkLocation.part(tag: "x").text))
            _ = place.rows.add(upload, partial: (2, 800, partial))
            let found = try await place.check()
            #expect(found.map(\.kind) == [.stagingShort])
            #expect(found.first?.chunks == [2...2])
        }
    }

    @Test(arguments: [9_999, 10_000, 10_001])
    func `a chunk whose part has other bytes is found`(byteCount: Int) async throws {
        try await withPlace { place in
            let (upload, _) = try await place.addInterrupted()
            let reference = try #require(try await place.reference(upload))
            _ = try await place.store.client.uploadPart(
                2, of: place.store.keys.assembled(upload.key), reference,
                S3Body([UInt8](repeating: 1, count: byteCount)))
            let found = try await place.check()
            #expect(found.map(\.kind) == [.stagingShort])
            #expect(found.first?.chunks == [1...1])
        }
    }

    @Test func `a part that was uploaded twice is no fault, whatever its tag`() async throws {
        try await withPlace { place in
            let (upload, _) = try await place.addInterrupted()
            let reference = try #require(try await place.reference(upload))
            let tag = try await place.store.client.uploadPart(
                1, of: place.store.keys.assembled(upload.key), reference,
                S3Body(Array(upload.content[..<SmallUpload.chunkByteCount])))
            #expect(upload.file.chunks[0].location != ChunkLocation.part(tag: tag).text)
            #expect(try await place.check() == [])
        }
    }

    @Test func `a partial with a missing piece is found`() async throws {
        try await withPlace { place in
            let (upload, _) = try await place.addInterrupted()
            let (client, keys) = (place.store.client, place.store.keys)
            let pieces = try await client.listObjects(
                prefix: keys.pieces(of: upload.key), after: nil)
            #expect(pieces.keys.count == 2)
            try await client.deleteObject(pieces.keys[1])
            let found = try await place.check()
            #expect(found.map(\.kind) == [.stagingShort])
            #expect(found.first?.chunks == [])
        }
    }

    @Test(arguments: [false, true])
    func `a missing multipart upload is found`(alsoPieces: Bool) async throws {
        try await withPlace { place in
            let (upload, _) = try await place.addInterrupted()
            let reference = try #require(try await place.reference(upload))
            let object = place.store.keys.assembled(upload.key)
            if alsoPieces {
                try await place.place.sweep(upload.key, in: place.store)
            } else {
                try await place.store.client.abortUpload(of: object, reference.id)
            }
            let found = try await place.check()
            #expect(found.map(\.kind) == [alsoPieces ? .stagingMissing : .stagingShort])
            #expect(found.first?.chunks == [0...1, 3...3])
        }
    }

    @Test func `an upload that was completed without its record is no fault`() async throws {
        try await withPlace { place in
            let upload = try await place.saved(byteCount: 25_000)
            let records = place.place.records
            let before = try await records.stagingState(of: upload.key)
            try await place.store.assemble(upload.file)
            _ = try await records.setStagingState(
                before, of: upload.key, replacing: records.stagingState(of: upload.key))
            _ = place.rows.add(upload)
            #expect(try await place.check(scrubbing: true) == [])
        }
    }

    @Test(arguments: [6000, 25_000])
    func `a blob that is gone or has another size is found`(byteCount: Int) async throws {
        try await withPlace { place in
            let (_, file) = try await place.addFile(byteCount: byteCount)
            let object = try #require(file.location)
            _ = try await place.store.client.putObject(object, S3Body([1, 2]))
            var found = try await place.check(scrubbing: true)
            #expect(found.map(\.kind) == [.blobSizeWrong])
            #expect(found.map(\.id) == [file.id.text])
            try await place.store.client.deleteObject(object)
            found = try await place.check(scrubbing: true)
            #expect(found.map(\.kind) == [.blobMissing])
            #expect(found.map(\.id) == [file.id.text])
        }
    }

    @Test func `flipped bytes in a blob and in a single chunk are found by hashing`() async throws {
        try await withPlace { place in
            let (upload, file) = try await place.addFile(byteCount: 25_000)
            let single = try await place.saved(byteCount: 6000)
            let session = place.rows.add(single)
            var content = upload.content
            content[12_345] ^= 1
            let client = place.store.client
            _ = try await client.putObject(try #require(file.location), S3Body(content))
            content = single.content
            content[7] ^= 1
            _ = try await client.putObject(
                place.store.keys.whole(single.key, single.chunks[0].digest), S3Body(content))
            #expect(try await place.check() == [])
            let found = try await place.check(scrubbing: true)
            #expect(found.map(\.kind) == [.chunkDamaged, .blobDamaged])
            #expect(found.map(\.id) == [session.id.text, file.id.text])
            #expect(found.map(\.chunks) == [[0...0], [1...1]])
        }
    }

    @Test func `unreadable bytes do not stop the check of the others`()
        async throws
    {
        try await withPlace { place in
            let (_, refused) = try await place.addFile(byteCount: 6000)
            let (_, damaged) = try await place.addFile(byteCount: 7000)
            try await S3InspectionPlace.stub.value.fail(
                .getObject, key: try #require(refused.location),
                with: .status(403, "AccessDenied"))
            _ = try await place.store.client.putObject(
                try #require(damaged.location), S3Body([UInt8](repeating: 1, count: 7000)))
            let found = try await place.check(scrubbing: true)
            #expect(found.map(\.kind) == [.bytesUnreadable, .blobDamaged])
            #expect(found.map(\.id) == [refused.id.text, damaged.id.text])
        }
    }

    @Test func `a store that cannot list parts is distinguished from one without parts`()
        async throws
    {
        try await withPlace { place in
            let (upload, session) = try await place.addInterrupted()
            try await S3InspectionPlace.stub.value.fail(
                .listParts, key: upload.key.text, with: .status(501, "NotImplemented"))
            for scrubbing in [false, true] {
                let found = try await place.check(scrubbing: scrubbing)
                #expect(found.map(\.kind) == [.bytesUnchecked])
                #expect(found.map(\.id) == [session.id.text])
            }
        }
    }
}
