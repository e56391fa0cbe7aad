internal import KedgeHash

/// The hashes that go along while a chunk is written.
struct ChunkHashes: Sendable {
    /// Of the chunk.
    var chunk: SHA256Hasher
    /// Of the file up to here, when its turn is at this chunk.
    var file: SHA256Hasher?
    /// Of everything that an append carries, across chunks.
    var append: AppendHash?

    /// Goes on over these bytes; blocks for as long as that takes.
    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        if var append {
            // What may yet be refused takes no turn in the file's hash.
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
