internal import KedgeEngine
internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel
internal import Testing

extension ByteStoreConformance {
    /// Makes a blob in the store.
    @Sendable
    private static func blob(
        _ byteCount: Int, in store: any ByteStore
    ) async throws -> (upload: StagedUpload, name: BlobName) {
        var upload = StagedUpload(byteCount: byteCount)
        try await upload.saveAll(in: store)
        return (upload, try await upload.promote(in: store))
    }

    static let blobs = [
        Case("a file of one chunk becomes a blob") { store in
            let (upload, name) = try await blob(1234, in: store)
            #expect(try await store.content(of: name) == upload.content)
        },
        Case("a file of no bytes becomes a blob of no bytes") { store in
            let (_, name) = try await blob(0, in: store)
            #expect(try await store.content(of: name) == [])
        },
        Case("promoting again after a success does nothing") { store in
            let (upload, name) = try await blob(StagedUpload.chunkByteCount + 1, in: store)
            #expect(try await upload.promote(in: store) == name)
            #expect(try await store.content(of: name) == upload.content)
        },
        Case("a file that was never stored is not found") { store in
            var upload = StagedUpload(byteCount: 100)
            upload.chunks = [
                CommittedChunk(
                    index: 0, byteCount: 100, digest: upload.digest, location: "part:\"0\"")
            ]
            let promoted = upload
            await #expect(throws: ByteStoreError.notFound) {
                try await promoted.promote(in: store)
            }
        },
        Case("a blob is read from any offset, and not beyond its end") { store in
            let (upload, name) = try await blob(StagedUpload.chunkByteCount + 5000, in: store)
            let reader = try await store.openBlob(name)
            #expect(reader.byteCount == Int64(upload.content.count))
            for offset in [StagedUpload.chunkByteCount - 50, 0, 4321, 4421] {
                let buffer = SampleBytes.buffer(capacity: 100)
                try await reader.read(into: buffer, at: Int64(offset), byteCount: 100)
                #expect(Array(buffer.bytes) == Array(upload.content[offset..<offset + 100]))
            }
            let end = SampleBytes.buffer(capacity: 100)
            await #expect(throws: ByteStoreError.notFound) {
                try await reader.read(into: end, at: reader.byteCount - 50, byteCount: 100)
            }
            await reader.close()
        },
        Case(reopening: "a blob is there after opening again") { open in
            let store = try await open()
            let (upload, name) = try await blob(1234, in: store)
            await store.close()
            let again = try await open()
            #expect(try await again.content(of: name) == upload.content)
            await again.close()
        },
        Case("a blob outlives the removal of the area that it came from") { store in
            for byteCount in [1234, StagedUpload.chunkByteCount + 1] {
                let (upload, name) = try await blob(byteCount, in: store)
                try await store.removeStaging(upload.key, state: nil, keeping: name.location)
                #expect(try await store.content(of: name) == upload.content)
            }
        },
        Case("a removed blob is not found, and removing it again is no error") { store in
            for byteCount in [1234, StagedUpload.chunkByteCount + 1] {
                let (upload, name) = try await blob(byteCount, in: store)
                for _ in 0..<2 {
                    // Each store names its blobs by one of the two.
                    try await store.removeBlob(name.digest)
                    try await store.removeStaging(upload.key, state: nil, keeping: nil)
                }
                await #expect(throws: ByteStoreError.notFound) {
                    try await store.content(of: name)
                }
            }
        },
    ]
}
