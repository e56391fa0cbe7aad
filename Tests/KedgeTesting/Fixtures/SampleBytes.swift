package import KedgeEngine
package import KedgeFiles
package import KedgeModel

/// Buffers with the bytes of tests that write and read small contents.
package enum SampleBytes {
    /// A buffer that holds the bytes.
    package static func buffer(_ bytes: [UInt8]) -> IOBuffer {
        let buffer = BufferPool(bufferCapacity: max(1, bytes.count), keptCount: 0).take()
        let count = bytes.withUnsafeBytes { buffer.append($0) }
        precondition(count == bytes.count, "the buffer was made for these bytes")
        return buffer
    }

    /// An empty buffer.
    package static func buffer(capacity: Int) -> IOBuffer {
        BufferPool(bufferCapacity: capacity, keptCount: 0).take()
    }
}

// Shorter calls for stores that sync a complete area and name blobs by their digest.
extension LocalByteStore {
    /// Makes a staging area with the bytes, synced.
    package func stage(_ bytes: [UInt8], as key: StagingKey) async throws {
        let area = try await openStaging(key)
        try await area.write(SampleBytes.buffer(bytes), at: 0)
        try await area.sync()
        await area.close()
    }

    /// Promotes an area whose chunks are of no interest.
    package func promote(
        _ key: StagingKey, to digest: SHA256Digest, byteCount: Int64
    ) async throws {
        _ = try await promote(
            StagedFile(key: key, byteCount: byteCount, chunks: []), to: digest)
    }

    package func removeStaging(_ key: StagingKey) async throws {
        try await removeStaging(key, state: nil, keeping: nil)
    }

    /// The whole content of a blob.
    package func content(of digest: SHA256Digest) async throws -> [UInt8] {
        try await content(of: BlobName(digest: digest, byteCount: 0))
    }
}

extension ByteStore {
    /// The whole content of a blob.
    package func content(of name: BlobName) async throws -> [UInt8] {
        let reader = try await openBlob(name)
        let buffer = SampleBytes.buffer(capacity: Int(reader.byteCount) + 1)
        while Int64(buffer.count) < reader.byteCount {
            let offset = Int64(buffer.count)
            try await reader.read(
                into: buffer, at: offset, byteCount: reader.byteCount - offset)
        }
        await reader.close()
        return Array(buffer.bytes)
    }
}

extension StagingArea {
    /// Makes all written bytes durable, in stores that sync a complete area.
    package func sync() async throws {
        _ = try await savePartial(ChunkRange(index: 0, start: 0, byteCount: 1), after: nil)
    }

    /// Some bytes of the area.
    package func bytes(at offset: Int64, count: Int) async throws -> [UInt8] {
        let buffer = SampleBytes.buffer(capacity: count + 1)
        try await read(into: buffer, at: offset, byteCount: Int64(count))
        return Array(buffer.bytes)
    }
}
