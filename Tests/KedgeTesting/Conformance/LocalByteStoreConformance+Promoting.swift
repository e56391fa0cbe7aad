internal import KedgeEngine
internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel
internal import Testing

extension LocalByteStoreConformance {
    /// Stages the bytes and promotes them; returns their digest.
    @Sendable
    private static func promote(
        _ bytes: [UInt8], _ store: any LocalByteStore, key: StagingKey = StagingKey(.random())
    ) async throws -> SHA256Digest {
        let digest = SHA256Hasher.digest(of: bytes)
        try await store.stage(bytes, as: key)
        try await store.promote(key, to: digest, byteCount: Int64(bytes.count))
        return digest
    }

    static let promoting = [
        Case("a promoted area is a blob and no area any more") { store in
            let digest = try await promote([1, 2, 3], store)
            #expect(try await store.content(of: digest) == [1, 2, 3])
            #expect(try await store.stagingKeys() == [])
        },
        Case("promoting again after a success does nothing") { store in
            let key = StagingKey(.random())
            let digest = try await promote([1, 2, 3], store, key: key)
            try await store.promote(key, to: digest, byteCount: 3)
            #expect(try await store.content(of: digest) == [1, 2, 3])
        },
        Case("the same bytes from two areas are stored once") { store in
            let first = try await promote([1, 2, 3], store)
            let second = try await promote([1, 2, 3], store)
            #expect(first == second)
            #expect(try await store.stagingKeys() == [])
            #expect(try await store.content(of: first) == [1, 2, 3])
        },
        Case("a promotion without an area or a blob of the size is not found") { store in
            let key = StagingKey(.random())
            let digest = SHA256Hasher.digest(of: [1, 2, 3])
            await #expect(throws: ByteStoreError.notFound) {
                try await store.promote(key, to: digest, byteCount: 3)
            }
            try await store.stage([1, 2], as: key)
            await #expect(throws: ByteStoreError.notFound) {
                try await store.promote(key, to: digest, byteCount: 3)
            }
            #expect(try await store.stagingByteCount(key) == 2)
        },
        Case("bytes beyond the file's size do not become part of the blob") { store in
            let key = StagingKey(.random())
            let digest = SHA256Hasher.digest(of: [1, 2, 3])
            try await store.stage([1, 2, 3, 4, 5], as: key)
            try await store.promote(key, to: digest, byteCount: 3)
            #expect(try await store.content(of: digest) == [1, 2, 3])
        },
        Case("a file of no bytes becomes a blob of no bytes") { store in
            let digest = try await promote([], store)
            #expect(try await store.content(of: digest) == [])
        },
    ]

    static let keeping = [
        Case(reopening: "a blob is there after opening again") { open in
            let store = try await open()
            let digest = try await promote([1, 2, 3], store)
            await store.close()
            let again = try await open()
            #expect(try await again.content(of: digest) == [1, 2, 3])
            await again.close()
        },
        Case("a blob is read from any offset") { store in
            let bytes = (0..<5000).map { UInt8(truncatingIfNeeded: $0 / 7) }
            let digest = try await promote(bytes, store)
            let reader = try await store.openBlob(
                BlobName(digest: digest, byteCount: Int64(bytes.count)))
            #expect(reader.byteCount == 5000)
            let buffer = SampleBytes.buffer(capacity: 100)
            try await reader.read(into: buffer, at: 4321, byteCount: 100)
            #expect(Array(buffer.bytes) == Array(bytes[4321..<4421]))
            let end = SampleBytes.buffer(capacity: 100)
            await #expect(throws: ByteStoreError.notFound) {
                try await reader.read(into: end, at: 4950, byteCount: 100)
            }
            await reader.close()
        },
        Case("a removed blob is not found, and removing it again is no error") { store in
            let digest = try await promote([1, 2, 3], store)
            for _ in 0..<2 { try await store.removeBlob(digest) }
            await #expect(throws: ByteStoreError.notFound) { try await store.content(of: digest) }
        },
        Case("a blob that was never there is not found and can be removed") { store in
            let digest = SHA256Hasher.digest(of: [9])
            await #expect(throws: ByteStoreError.notFound) { try await store.content(of: digest) }
            try await store.removeBlob(digest)
        },
        Case("a working store passes its health check and has space") { store in
            try await store.checkHealth()
            try await store.checkHealth()
            #expect(try await store.availableBytes() > 0)
            #expect(try await store.stagingKeys() == [])
        },
    ]
}
