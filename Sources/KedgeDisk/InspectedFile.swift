internal import KedgeEngine
internal import KedgeFiles

/// Reads a staging file or a blob for an inspection.
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
        // Neither the closure nor the pool throws an error of its own.
        try? await pool.run { [file] in file.dropCached(byteCount, at: offset) }
    }

    func close() async {
        // A reader has nothing to lose at close.
        try? await pool.run { [file] in try file.close() }
    }
}
