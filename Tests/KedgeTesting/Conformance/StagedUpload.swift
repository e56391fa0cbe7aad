package import KedgeEngine
internal import KedgeHash
package import KedgeModel

/// A file that is stored chunk by chunk, as the engine does.
package struct StagedUpload: Sendable {
    /// Object stores accept no smaller part of a file, except for the last one.
    package static let chunkByteCount = 5 << 20

    package let key: StagingKey
    package var content: [UInt8]
    package var chunks: [CommittedChunk] = []

    /// - Parameter byteCount: Size of the file, with content that says where each byte belongs.
    package init(byteCount: Int, key: StagingKey = StagingKey(.random())) {
        self.key = key
        content = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 12) }
    }

    package var digest: SHA256Digest { SHA256Hasher.digest(of: content) }
    package var chunkCount: Int { (content.count + Self.chunkByteCount - 1) / Self.chunkByteCount }

    /// The file once all chunks are saved.
    package var file: StagedFile {
        StagedFile(
            key: key, byteCount: Int64(content.count),
            chunks: chunks.sorted { $0.index < $1.index })
    }

    package func range(_ index: Int, byteCount: Int? = nil) -> ChunkRange {
        let start = index * Self.chunkByteCount
        let end = min(start + Self.chunkByteCount, content.count)
        return ChunkRange(
            index: index, start: Int64(start), byteCount: Int64(byteCount ?? end - start),
            isWholeFile: content.count <= Self.chunkByteCount)
    }

    /// Writes some bytes of a chunk where they belong.
    package func write(_ range: Range<Int>, ofChunk index: Int, to area: any StagingArea)
        async throws
    {
        let start = Int(self.range(index).start)
        let bytes = Array(content[(start + range.lowerBound)..<(start + range.upperBound)])
        try await area.write(SampleBytes.buffer(bytes), at: Int64(start + range.lowerBound))
    }

    /// Writes a chunk and saves it.
    package mutating func save(_ index: Int, in area: any StagingArea) async throws {
        let byteCount = Int(range(index).byteCount)
        try await write(0..<byteCount, ofChunk: index, to: area)
        try await saveWritten(index, in: area, after: nil)
    }

    /// Saves a chunk whose bytes were written.
    package mutating func saveWritten(
        _ index: Int, in area: any StagingArea, after earlier: String?
    ) async throws {
        let range = range(index)
        let bytes = content[Int(range.start)..<Int(range.end)]
        let digest = SHA256Hasher.digest(of: Array(bytes))
        let location = try await area.saveChunk(range, digest: digest, after: earlier)
        chunks.append(
            CommittedChunk(
                index: index, byteCount: range.byteCount, digest: digest, location: location))
    }

    /// Saves all chunks in the order of their index.
    package mutating func saveAll(in store: any ByteStore) async throws {
        let area = try await store.openStaging(key)
        for index in 0..<chunkCount { try await save(index, in: area) }
        await area.close()
    }

    /// Makes a blob of the file.
    package func promote(in store: any ByteStore) async throws -> BlobName {
        let location = try await store.promote(file, to: digest)
        return BlobName(digest: digest, byteCount: Int64(content.count), location: location)
    }
}
