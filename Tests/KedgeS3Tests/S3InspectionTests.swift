import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeS3
import KedgeTesting
import Testing

/// R2: findings of a check in a bucket.
@Suite(.timeLimit(.minutes(2))) struct S3InspectionTests {
    private func withEnvironment(
        _ body: (inout S3InspectionEnvironment) async throws -> Void
    ) async throws {
        var fixture = try await S3InspectionEnvironment()
        try await body(&fixture)
        await fixture.store.close()
    }

    @Test
    func `an undamaged bucket has no findings, and a scrub notes the bytes that it cannot read`()
        async throws
    {
        try await withEnvironment { fixture in
            let (_, session) = try await fixture.addInterrupted()
            _ = fixture.rows.add(try await fixture.saved(byteCount: 6000))
            let assembled = try await fixture.saved(byteCount: 25_000)
            try await fixture.store.assemble(assembled.file)
            _ = fixture.rows.add(assembled)
            _ = fixture.rows.add(SmallUpload(byteCount: 5000))
            for byteCount in [0, 6000, 25_000] {
                _ = try await fixture.addFile(byteCount: byteCount)
            }
            #expect(try await fixture.check() == [])
            let found = try await fixture.check(scrubbing: true)
            #expect(found.map(\.kind) == [.bytesUnchecked])
            #expect(found.map(\.id) == [session.id.text])
            #expect(found.allSatisfy { $0.isNotice })
        }
    }

    @Test func `a chunk whose part is missing is found`() async throws {
        try await withEnvironment { fixture in
            var (upload, partial) = try await fixture.interrupted()
            upload.chunks.append(
                CommittedChunk(
                    index: 2, byteCount: Int64(SmallUpload.chunkByteCount),
                    digest: Sample.digest("lost"), location: ChunkLocation.part(tag: "x").text))
            _ = fixture.rows.add(upload, partial: (2, 800, partial))
            let found = try await fixture.check()
            #expect(found.map(\.kind) == [.stagingShort])
            #expect(found.first?.chunks == [2...2])
        }
    }

    @Test(arguments: [9_999, 10_000, 10_001])
    func `a chunk whose part has other bytes is found`(byteCount: Int) async throws {
        try await withEnvironment { fixture in
            let (upload, _) = try await fixture.addInterrupted()
            let reference = try #require(try await fixture.reference(upload))
            _ = try await fixture.store.client.uploadPart(
                2, of: fixture.store.keys.assembled(upload.key), reference,
                S3Body([UInt8](repeating: 1, count: byteCount)))
            let found = try await fixture.check()
            #expect(found.map(\.kind) == [.stagingShort])
            #expect(found.first?.chunks == [1...1])
        }
    }

    @Test func `a part that was uploaded twice is no fault, whatever its tag`() async throws {
        try await withEnvironment { fixture in
            let (upload, _) = try await fixture.addInterrupted()
            let reference = try #require(try await fixture.reference(upload))
            let tag = try await fixture.store.client.uploadPart(
                1, of: fixture.store.keys.assembled(upload.key), reference,
                S3Body(Array(upload.content[..<SmallUpload.chunkByteCount])))
            #expect(upload.file.chunks[0].location != ChunkLocation.part(tag: tag).text)
            #expect(try await fixture.check() == [])
        }
    }

    @Test func `a partial with a missing piece is found`() async throws {
        try await withEnvironment { fixture in
            let (upload, _) = try await fixture.addInterrupted()
            let (client, keys) = (fixture.store.client, fixture.store.keys)
            let pieces = try await client.listObjects(
                prefix: keys.pieces(of: upload.key), after: nil)
            #expect(pieces.keys.count == 2)
            try await client.deleteObject(pieces.keys[1])
            let found = try await fixture.check()
            #expect(found.map(\.kind) == [.stagingShort])
            #expect(found.first?.chunks == [])
        }
    }

    @Test(arguments: [false, true])
    func `a missing multipart upload is found`(alsoPieces: Bool) async throws {
        try await withEnvironment { fixture in
            let (upload, _) = try await fixture.addInterrupted()
            let reference = try #require(try await fixture.reference(upload))
            let object = fixture.store.keys.assembled(upload.key)
            if alsoPieces {
                try await fixture.fixture.sweep(upload.key, in: fixture.store)
            } else {
                try await fixture.store.client.abortUpload(of: object, reference.id)
            }
            let found = try await fixture.check()
            #expect(found.map(\.kind) == [alsoPieces ? .stagingMissing : .stagingShort])
            #expect(found.first?.chunks == [0...1, 3...3])
        }
    }

    @Test func `an upload that was completed without its record is no fault`() async throws {
        try await withEnvironment { fixture in
            let upload = try await fixture.saved(byteCount: 25_000)
            let records = fixture.fixture.records
            let before = try await records.stagingState(of: upload.key)
            try await fixture.store.assemble(upload.file)
            _ = try await records.setStagingState(
                before, of: upload.key, replacing: records.stagingState(of: upload.key))
            _ = fixture.rows.add(upload)
            #expect(try await fixture.check(scrubbing: true) == [])
        }
    }

    @Test(arguments: [6000, 25_000])
    func `a blob that is gone or has another size is found`(byteCount: Int) async throws {
        try await withEnvironment { fixture in
            let (_, file) = try await fixture.addFile(byteCount: byteCount)
            let object = try #require(file.location)
            _ = try await fixture.store.client.putObject(object, S3Body([1, 2]))
            var found = try await fixture.check(scrubbing: true)
            #expect(found.map(\.kind) == [.blobSizeWrong])
            #expect(found.map(\.id) == [file.id.text])
            try await fixture.store.client.deleteObject(object)
            found = try await fixture.check(scrubbing: true)
            #expect(found.map(\.kind) == [.blobMissing])
            #expect(found.map(\.id) == [file.id.text])
        }
    }

    @Test func `flipped bytes in a blob and in a single chunk are found by hashing`() async throws {
        try await withEnvironment { fixture in
            let (upload, file) = try await fixture.addFile(byteCount: 25_000)
            let single = try await fixture.saved(byteCount: 6000)
            let session = fixture.rows.add(single)
            var content = upload.content
            content[12_345] ^= 1
            let client = fixture.store.client
            _ = try await client.putObject(try #require(file.location), S3Body(content))
            content = single.content
            content[7] ^= 1
            _ = try await client.putObject(
                fixture.store.keys.whole(single.key, single.chunks[0].digest), S3Body(content))
            #expect(try await fixture.check() == [])
            let found = try await fixture.check(scrubbing: true)
            #expect(found.map(\.kind) == [.chunkDamaged, .blobDamaged])
            #expect(found.map(\.id) == [session.id.text, file.id.text])
            #expect(found.map(\.chunks) == [[0...0], [1...1]])
        }
    }

    @Test func `unreadable bytes do not stop the check of the others`()
        async throws
    {
        try await withEnvironment { fixture in
            let (_, refused) = try await fixture.addFile(byteCount: 6000)
            let (_, damaged) = try await fixture.addFile(byteCount: 7000)
            try await S3InspectionEnvironment.stub.value.fail(
                .getObject, key: try #require(refused.location),
                with: .status(403, "AccessDenied"))
            _ = try await fixture.store.client.putObject(
                try #require(damaged.location), S3Body([UInt8](repeating: 1, count: 7000)))
            let found = try await fixture.check(scrubbing: true)
            #expect(found.map(\.kind) == [.bytesUnreadable, .blobDamaged])
            #expect(found.map(\.id) == [refused.id.text, damaged.id.text])
        }
    }

    @Test func `a store that cannot list parts is distinguished from one without parts`()
        async throws
    {
        try await withEnvironment { fixture in
            let (upload, session) = try await fixture.addInterrupted()
            try await S3InspectionEnvironment.stub.value.fail(
                .listParts, key: upload.key.text, with: .status(501, "NotImplemented"))
            for scrubbing in [false, true] {
                let found = try await fixture.check(scrubbing: scrubbing)
                #expect(found.map(\.kind) == [.bytesUnchecked])
                #expect(found.map(\.id) == [session.id.text])
            }
        }
    }
}
