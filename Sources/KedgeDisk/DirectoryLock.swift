internal import Glibc
package import KedgeFiles
internal import KedgeLocks

/// The lock of a data directory. It refuses a second process before that one changes anything.
package final class DirectoryLock: Sendable {
    private let file: Mutex<(any OpenFile)?>
    private let pool: BlockingPool

    private init(_ file: any OpenFile, pool: BlockingPool) {
        self.file = Mutex(file)
        self.pool = pool
    }

    /// Creates the directory when it is absent and locks it.
    package static func take(
        _ path: String, pool: BlockingPool, fileSystem: any FileSystem = POSIXFileSystem()
    ) async throws(DiskStoreError) -> DirectoryLock {
        do {
            let file = try await pool.run {
                try DurableNames(fileSystem).makeRoot(path)
                let file = try fileSystem.open(DataDirectory(root: path).lock, .openOrCreate)
                try file.lockWithinMoments()
                return file
            }
            return DirectoryLock(file, pool: pool)
        } catch let error as FileError {
            throw error.code == .locked ? .inUse(directory: path) : .unusable(error)
        } catch {
            preconditionFailure("only the file system throws here")
        }
    }

    /// Releases the directory. Closing the descriptor releases the lock, so an error has no effect.
    package func release() async {
        try? await pool.run { [self] in try file.withLock { $0.take() }?.close() }
    }
}

extension OpenFile {
    /// Locks the file. Tries a lock that is held again for a fifth of a second: after its holder
    /// has released it, a process that the holder is just starting has it until it executes its
    /// program.
    func lockWithinMoments() throws(FileError) {
        for _ in 0..<10 {
            do throws(FileError) {
                return try lockExclusively()
            } catch {
                guard error.code == .locked else { throw error }
                usleep(20_000)
            }
        }
        try lockExclusively()
    }
}
