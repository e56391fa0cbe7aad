package import KedgeEngine
package import KedgeFiles
internal import KedgeModel

/// Reasons that a data directory could not be opened.
package enum DiskStoreError: Error, Equatable, Sendable {
    /// Another process, or another store of this one, uses the directory.
    case inUse(directory: String)
    /// The directory cannot be created or read.
    case unusable(FileError)
}

extension DiskStoreError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .inUse(let directory): "\(directory) is in use by another kedge process"
        case .unusable(let error): error.debugDescription
        }
    }
}

/// A byte store in files below one directory, used by this process alone.
///
/// A name is durable once its directory is synced, bytes once `fdatasync` has succeeded. All calls
/// to the file system run on the pool.
package final class DiskStore: LocalByteStore {
    let directory: DataDirectory
    let fileSystem: any FileSystem
    let pool: BlockingPool
    let names: DurableNames
    private let reserveByteCount: Int64
    private let lock: DirectoryLock

    private init(
        _ directory: DataDirectory, fileSystem: any FileSystem, pool: BlockingPool,
        names: DurableNames, reserveByteCount: Int64, lock: DirectoryLock
    ) {
        self.directory = directory
        self.fileSystem = fileSystem
        self.pool = pool
        self.names = names
        self.reserveByteCount = reserveByteCount
        self.lock = lock
    }

    /// Space that stays free for the database and the system by default: 64 MiB.
    package static let defaultReserveByteCount: Int64 = 64 << 20

    /// Creates the directory when it is absent and locks it for this store.
    ///
    /// - Parameter reserveByteCount: Free space that ``availableBytes()`` leaves out. Without a
    ///   reserve, a disk full of uploads has no room for the rows that make them count.
    package static func open(
        _ path: String, pool: BlockingPool, fileSystem: any FileSystem = POSIXFileSystem(),
        reserveByteCount: Int64 = defaultReserveByteCount
    ) async throws(DiskStoreError) -> DiskStore {
        let directory = DataDirectory(root: path)
        let names = DurableNames(fileSystem)
        // Before any other change.
        let lock = try await DirectoryLock.take(path, pool: pool, fileSystem: fileSystem)
        do {
            try await pool.run {
                for name in [
                    directory.staging, directory.blobs, directory.superseded,
                    directory.quarantine,
                ] {
                    try names.makeDirectory(name, upTo: path)
                }
            }
        } catch let error as FileError {
            await lock.release()
            throw .unusable(error)
        } catch {
            preconditionFailure("only the file system throws here")
        }
        return DiskStore(
            directory, fileSystem: fileSystem, pool: pool, names: names,
            reserveByteCount: reserveByteCount, lock: lock)
    }

    /// A random text stored in this directory; the first call makes it durable.
    package func identity() async throws -> String {
        try await onPool { [self] in
            let file = try fileSystem.open(directory.identity, .openOrCreate)
            var bytes = [UInt8](repeating: 0, count: 32)
            let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 0) }
            var text = String(decoding: bytes, as: UTF8.self)
            if count < bytes.count {
                // New, or truncated by a crash before any caller received it.
                text = SessionID.random().text
                try Array(text.utf8).withUnsafeBytes { try file.write($0, at: 0) }
            }
            try file.syncData()
            try file.close()
            try names.sync(directory.root)
            return "disk:\(text)"
        }
    }

    package var traits: ByteStoreTraits {
        ByteStoreTraits(
            needsAssembly: false, needsChunkList: false, stagingNeedsFullSize: true,
            overwritesPartials: true, replacesSingleChunks: true, leavesLateBytes: false,
            sharesCheckpoints: false, removesInBackground: false, garbageBatchSize: 200)
    }

    package func availableBytes() async throws -> Int64 {
        let free = try await onPool { [self] in try fileSystem.availableBytes(at: directory.root) }
        return max(0, free - reserveByteCount)
    }

    package func checkHealth() async throws {
        try await onPool { [self] in
            let file = try fileSystem.open(directory.probe, .openOrCreate)
            try withUnsafeBytes(of: UInt8(0)) { try file.write($0, at: 0) }
            try file.syncData()
            try file.close()
            try fileSystem.remove(directory.probe)
        }
    }

    package func close() async { await lock.release() }

    /// Runs blocking work on the pool and translates its errors.
    func onPool<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> Value
    ) async throws(ByteStoreError) -> Value {
        do {
            return try await pool.run(work)
        } catch {
            throw ByteStoreError(error)
        }
    }
}

extension ByteStoreError {
    /// Translates the error of a call. The text is for logs only: it contains the path.
    init(_ error: any Error) {
        switch error {
        case let error as ByteStoreError: self = error
        case let error as FileError:
            let text = error.debugDescription
            switch error.code {
            case .noSpace: self = .full(text)
            // A refused permission says nothing about the bytes.
            case .permission, .readOnly, .tooManyOpen, .locked: self = .unavailable(text)
            case .notFound, .exists, .io, .other: self = .failed(text)
            }
        default: self = .failed("\(error)")
        }
    }
}
