internal import KedgeHash
internal import KedgeModel

/// Hashes of the bytes of a chunk that are present.
struct ChunkProgress: Sendable {
    /// Hash of the chunk.
    private(set) var chunk = SHA256Hasher()
    /// The file's hash before the chunk and after its present bytes; nil unless it includes the
    /// chunk as it is written.
    private(set) var file: (before: SHA256Hasher, after: SHA256Hasher)?

    init() {}

    /// Continues after the bytes of an earlier run, without the file's hash.
    init(chunk: SHA256Hasher) { self.chunk = chunk }

    /// The chunk's hash in its recorded form.
    var saved: SavedHash { SavedHash(offsetBytes: chunk.byteCount, state: chunk.savedState) }

    /// Number of bytes present.
    var byteCount: Int64 { chunk.byteCount }

    /// Includes the chunk in the file's hash. Requires that no byte of the chunk is present.
    mutating func join(_ fileHash: SHA256Hasher) { file = (fileHash, fileHash) }

    /// Hashes further bytes; blocks meanwhile.
    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard var after = file?.after else { return chunk.update(bytes) }
        SHA256Hasher.update(&chunk, &after, with: bytes)
        file?.after = after
    }
}
