package import KedgeFiles

/// Reads files of a few kilobytes: keys and tokens.
package struct SmallFiles: Sendable {
    private static let maxByteCount = 1 << 20

    let fileSystem: any FileSystem
    let pool: BlockingPool

    package init(
        fileSystem: any FileSystem,
        pool: BlockingPool
    ) {
        self.fileSystem = fileSystem
        self.pool = pool
    }

    /// Reads the file; nil when it does not exist.
    func text(at path: String) async throws -> String? {
        do {
            return try await pool.run {
                let file = try fileSystem.open(path, .readFollowingLinks)
                let count = Int(min(try file.status().byteCount, Int64(Self.maxByteCount)))
                var bytes = [UInt8](repeating: 0, count: count)
                let read = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 0) }
                try file.close()
                return String(decoding: bytes.prefix(read), as: UTF8.self)
            }
        } catch let error as FileError where error.code == .notFound {
            return nil
        } catch let error as FileError {
            throw S3SetupError(error.debugDescription)
        }
    }
}
