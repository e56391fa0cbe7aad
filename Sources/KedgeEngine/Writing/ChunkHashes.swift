internal import KedgeHash

/// The hashes that are computed while a chunk is written.
struct ChunkHashes: Sendable {
    /// Hash of the chunk.
    var chunk: SHA256Hasher
    /// Hash of the file up to here, if it is computed with this chunk.
    var file: SHA256Hasher?
    /// Checksums of an append's whole body, across chunks.
    var append: AppendHash?

    /// Hashes these bytes. Blocks the calling thread.
    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        if var append {
            // A body that may still be refused has no step in the file's hash.
            append.update(bytes, beside: &chunk)
            self.append = append
        } else if var file {
            SHA256Hasher.update(&chunk, &file, with: bytes)
            self.file = file
        } else {
            chunk.update(bytes)
        }
    }
}
