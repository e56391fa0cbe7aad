package import KedgeEngine
package import KedgeFiles
package import KedgeModel

/// Bytes for tests that see the whole of what they write.
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

extension ByteStore {
    /// Makes a staging area with the bytes, synced.
    package func stage(_ bytes: [UInt8], as key: StagingKey) async throws {
        let area = try await openStaging(key)
        try await area.write(SampleBytes.buffer(bytes), at: 0)
        try await area.sync()
        await area.close()
    }

    /// The whole content of a blob.
    package func content(of digest: SHA256Digest) async throws -> [UInt8] {
        let reader = try await openBlob(digest)
        let buffer = SampleBytes.buffer(capacity: Int(reader.byteCount) + 1)
        try await reader.read(into: buffer, at: 0, byteCount: reader.byteCount)
        await reader.close()
        return Array(buffer.bytes)
    }
}

extension StagingArea {
    /// Some bytes of the area.
    package func bytes(at offset: Int64, count: Int) async throws -> [UInt8] {
        let buffer = SampleBytes.buffer(capacity: count + 1)
        try await read(into: buffer, at: offset, byteCount: Int64(count))
        return Array(buffer.bytes)
    }
}
