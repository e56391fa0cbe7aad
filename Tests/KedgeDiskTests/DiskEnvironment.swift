import KedgeDisk
import KedgeFiles
import KedgeTesting

/// A test's own data directory, over a file system that can fail.
final class DiskEnvironment: Sendable {
    let directory: TemporaryDirectory
    let files = FaultyFileSystem()
    private let pool: BlockingPool

    init(threadCount: Int = 4) throws {
        directory = try TemporaryDirectory()
        pool = BlockingPool(threadCount: threadCount)
    }

    var path: String { directory.path + "/data" }

    func open(reserveByteCount: Int64 = 0) async throws -> DiskStore {
        try await DiskStore.open(
            path, pool: pool, fileSystem: files, reserveByteCount: reserveByteCount)
    }

    /// Waits until the pool's only thread has finished its earlier work.
    func settle() async throws { try await pool.run {} }
}
