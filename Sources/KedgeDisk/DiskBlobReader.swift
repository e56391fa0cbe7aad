internal import KedgeEngine
internal import KedgeFiles
internal import KedgeLocks

/// Reads one blob through its own descriptor, which keeps the bytes readable after the blob is
/// removed.
final class DiskBlobReader: BlobReader {
    let byteCount: Int64
    private let file: Mutex<(any OpenFile)?>
    private let store: DiskStore

    init(_ file: any OpenFile, byteCount: Int64, store: DiskStore) {
        self.file = Mutex(file)
        self.byteCount = byteCount
        self.store = store
    }

    func read(into buffer: IOBuffer, at offset: Int64, byteCount: Int64) async throws {
        let file = try openFile()
        try await store.onPool { try file.fill(buffer, at: offset, byteCount: byteCount) }
    }

    func prefetch(_ byteCount: Int64, at offset: Int64) async throws {
        let file = try openFile()
        try await store.onPool { try file.prefetch(byteCount, at: offset) }
    }

    func dropCached(_ byteCount: Int64, at offset: Int64) async {
        // A closed blob has nothing to drop.
        try? await store.onPool { [self] in
            try openFile().dropCached(byteCount, at: offset)
        }
    }

    func duplicateDescriptor() async throws -> Int32? {
        let file = try openFile()
        return try await store.onPool { try file.duplicateDescriptor() }
    }

    private func openFile() throws(ByteStoreError) -> any OpenFile {
        guard let file = file.withLock({ $0 }) else { throw .failed("the blob is closed") }
        return file
    }

    func close() async {
        // A reader has nothing to lose at close. A read in progress keeps the file open until it
        // ends.
        try? await store.onPool { [self] in file.withLock { $0 = nil } }
    }
}

extension OpenFile {
    /// Fills the buffer's free part, at most `byteCount` bytes.
    ///
    /// - Throws: `notFound` when the file ends early.
    func fill(_ buffer: IOBuffer, at offset: Int64, byteCount: Int64) throws {
        let wanted = min(Int(clamping: byteCount), buffer.freeCount)
        var found = 0
        try buffer.fillFree(limit: wanted) { memory throws(FileError) in
            found = try read(into: memory, at: offset)
            return found
        }
        guard found == wanted else { throw ByteStoreError.notFound }
    }
}
