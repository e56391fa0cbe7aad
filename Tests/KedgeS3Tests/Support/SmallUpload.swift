import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeS3
import KedgeTesting

/// An upload of small chunks, for servers that accept small parts.
struct SmallUpload: Sendable {
    static let chunkByteCount = 10_000

    let key = StagingKey(.random())
    let content: [UInt8]
    var chunks: [CommittedChunk] = []

    init(content: [UInt8]) { self.content = content }

    init(byteCount: Int) {
        self.init(content: (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
    }

    var file: StagedFile {
        StagedFile(
            key: key, byteCount: Int64(content.count),
            chunks: chunks.sorted { $0.index < $1.index })
    }

    func range(_ index: Int, byteCount: Int? = nil) -> ChunkRange {
        let start = index * Self.chunkByteCount
        let end = min(start + Self.chunkByteCount, content.count)
        return ChunkRange(
            index: index, start: Int64(start), byteCount: Int64(byteCount ?? end - start),
            isWholeFile: content.count <= Self.chunkByteCount)
    }

    /// Writes some bytes of a chunk at their offset.
    func write(_ range: Range<Int>, ofChunk index: Int, to area: any StagingArea) async throws {
        let start = index * Self.chunkByteCount + range.lowerBound
        let bytes = Array(content[start..<start + range.count])
        try await area.write(SampleBytes.buffer(bytes), at: Int64(start))
    }

    /// Writes a chunk and saves it.
    mutating func save(_ index: Int, in area: any StagingArea) async throws {
        try await write(0..<Int(range(index).byteCount), ofChunk: index, to: area)
        try await saveWritten(index, in: area, after: nil)
    }

    /// Saves a chunk whose bytes were written.
    mutating func saveWritten(
        _ index: Int, in area: any StagingArea, after earlier: String?
    ) async throws {
        let range = range(index)
        let digest = SHA256Hasher.digest(of: Array(content[Int(range.start)..<Int(range.end)]))
        let location = try await area.saveChunk(range, digest: digest, after: earlier)
        chunks.append(
            CommittedChunk(
                index: index, byteCount: range.byteCount, digest: digest, location: location))
    }

    /// Saves all chunks in the order of their index.
    mutating func saveAll(in store: S3Store) async throws {
        let area = try await store.openStaging(key)
        for start in stride(from: 0, to: content.count, by: Self.chunkByteCount) {
            try await save(start / Self.chunkByteCount, in: area)
        }
        await area.close()
    }

    /// Promotes the file to a blob.
    func promote(in store: S3Store) async throws -> BlobName {
        let digest = SHA256Hasher.digest(of: content)
        let location = try await store.promote(file, to: digest)
        return BlobName(digest: digest, byteCount: Int64(content.count), location: location)
    }
}
