internal import KedgeEngine
internal import KedgeFiles

/// Reads a staging file or a blob of a place that is looked at.
final class InspectedFile: BlobReader {
    let byteCount: Int64
    private let file: any OpenFile
    private let pool: BlockingPool

    init(_ file: any OpenFile, byteCount: Int64, pool: BlockingPool) {
        self.file = file
        self.byteCount = byteCount
        self.pool = pool
    }

    func read(into buffer: IOBuffer, at offset: Int64, byteCount: Int64) async throws {
        do {
            try await pool.run { [file] in try file.fill(buffer, at: offset, byteCount: byteCount) }
        } catch {
            throw ByteStoreError(error)
        }
    }

    func dropCached(_ byteCount: Int64, at offset: Int64) async {
        // It throws nothing but a cancellation, which the next read meets, too.
        try? await pool.run { [file] in file.dropCached(byteCount, at: offset) }
    }

    func close() async {
        // A reader has nothing to lose at close.
        try? await pool.run { [file] in try file.close() }
    }
}
