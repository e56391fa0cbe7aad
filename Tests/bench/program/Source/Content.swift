/// The content of one uploaded file: chunks of the source from one chunk on, and around again.
///
/// Files that start at different chunks differ, so a store that keeps equal files once gains
/// nothing.
struct Content: Sendable {
    let source: SourceFile
    let byteCount: Int
    let chunkByteCount: Int
    /// The source's chunk at the beginning of the file.
    private let firstChunk: Int
    /// Number of chunks of the source, after which it starts again.
    private let cycle: Int
    /// Digests of the source's chunks; empty when the only chunk is the last one.
    private let digests: [String]
    /// Digest of the last chunk, which may be shorter.
    private let lastDigest: String

    /// - Parameter chunkByteCount: Bytes of each chunk, at most the source's.
    init(
        _ source: SourceFile, byteCount: Int, chunkByteCount: Int, firstChunk: Int = 0
    ) throws {
        self.source = source
        self.byteCount = byteCount
        self.chunkByteCount = chunkByteCount
        cycle = source.byteCount / chunkByteCount
        self.firstChunk = firstChunk % cycle
        let last = (byteCount - 1) / chunkByteCount
        digests =
            last == 0
            ? []
            : try source.chunkDigests(
                chunkByteCount, count: min(cycle, self.firstChunk + last))
        lastDigest = try source.digest(
            at: (self.firstChunk + last) % cycle * chunkByteCount,
            byteCount: byteCount - last * chunkByteCount)
    }

    var chunkCount: Int { (byteCount + chunkByteCount - 1) / chunkByteCount }

    /// One chunk: its place in the file and in the source, and its digest.
    struct Chunk: Sendable {
        let index: Int
        let offset: Int
        let byteCount: Int
        let sourceOffset: Int
        let digest: String
    }

    func chunk(_ index: Int) -> Chunk {
        let place = (firstChunk + index) % cycle
        let offset = index * chunkByteCount
        return Chunk(
            index: index, offset: offset, byteCount: min(chunkByteCount, byteCount - offset),
            sourceOffset: place * chunkByteCount,
            digest: index == chunkCount - 1 ? lastDigest : digests[place])
    }
}
