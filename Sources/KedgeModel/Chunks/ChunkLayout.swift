/// The division of a file into chunks: all have the same size, but the last may be short.
///
/// A file of zero bytes has no chunks. The layout of a file whose size is still unknown has no end;
/// its ``chunkCount`` is nil until the size is declared.
public struct ChunkLayout: Hashable, Sendable {
    /// Default size of a chunk in bytes: 4 MiB.
    public static let defaultChunkSize: Int64 = 4 << 20
    /// Maximum number of chunks in a file, which bounds bit sets and chunk lists.
    public static let maxChunkCount = 1 << 20

    /// Size of the file in bytes, nil while unknown.
    public let fileSize: Int64?
    /// Size of every chunk but the last, in bytes.
    public let chunkSize: Int64

    /// - Precondition: `chunkSize > 0` and `fileSize >= 0`; check values from the wire first.
    public init(fileSize: Int64?, chunkSize: Int64) {
        precondition(chunkSize > 0, "a chunk has at least one byte")
        precondition((fileSize ?? 0) >= 0, "a file has no negative size")
        self.fileSize = fileSize
        self.chunkSize = chunkSize
    }

    /// Number of chunks; nil while the file size is unknown.
    public var chunkCount: Int? {
        guard let fileSize else { return nil }
        return Int(fileSize / chunkSize) + (fileSize % chunkSize == 0 ? 0 : 1)
    }

    /// Returns the bytes of a chunk; nil when the layout has no such chunk.
    public func range(ofChunk index: Int) -> ByteRange? {
        guard index >= 0, index < chunkCount ?? Self.maxChunkCount else { return nil }
        let (start, overflow) = Int64(index).multipliedReportingOverflow(by: chunkSize)
        guard !overflow else { return nil }
        let (fullEnd, endOverflow) = start.addingReportingOverflow(chunkSize)
        let end = min(endOverflow ? Int64.max : fullEnd, fileSize ?? Int64.max)
        return ByteRange(start: start, end: end)
    }

    /// Returns the index of the chunk that contains the byte at `offset`.
    public func index(ofByteAt offset: Int64) -> Int { Int(offset / chunkSize) }

    /// Returns the preferred size, doubled until the number of chunks is within the limit. For a
    /// file of unknown size, returns the preferred size.
    public static func chunkSize(
        preferred: Int64, forFileOf fileSize: Int64?, maxChunkCount: Int = Self.maxChunkCount
    ) -> Int64 {
        guard let fileSize else { return preferred }
        var size = preferred
        while (fileSize - 1) / size >= Int64(maxChunkCount), size < Int64.max / 2 { size *= 2 }
        return size
    }
}
