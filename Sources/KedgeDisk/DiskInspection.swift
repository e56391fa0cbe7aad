package import KedgeEngine
package import KedgeFiles
internal import KedgeModel

/// Reads a data directory without changing anything in it, not even a timestamp or a missing
/// directory.
///
/// Holds the lock meanwhile, or reads beside the process that holds it. A directory without a lock
/// file, such as a restored copy, is read without a lock, because creating one would be a change.
/// ``confirmUndisturbed()`` then detects a process that started to use the directory.
package final class DiskInspection: CheckedFiles {
    private let directory: DataDirectory
    private let fileSystem: any FileSystem
    private let pool: BlockingPool
    private let protection: Protection

    /// The protection against changes by other processes.
    enum Protection: Sendable {
        /// The lock, taken by this inspection.
        case lock(any OpenFile)
        /// The lock of a store of this process, which outlives this inspection.
        case store
        /// Another process holds the lock and continues to work.
        case otherProcess
        /// No lock: there was no lock file.
        case nothing
    }

    init(
        _ directory: DataDirectory, fileSystem: any FileSystem, pool: BlockingPool,
        protection: Protection
    ) {
        self.directory = directory
        self.fileSystem = fileSystem
        self.pool = pool
        self.protection = protection
    }

    /// True while another process may change the directory.
    package var isShared: Bool {
        if case .otherProcess = protection { true } else { false }
    }

    /// Opens an existing directory.
    ///
    /// - Parameter besideOthers: Whether to read even while another process uses the directory.
    /// - Throws: `inUse` while another process uses it, `unusable` when it cannot be read.
    package static func open(
        _ path: String, pool: BlockingPool, fileSystem: any FileSystem = POSIXFileSystem(),
        besideOthers: Bool = false
    ) async throws(DiskStoreError) -> DiskInspection {
        let directory = DataDirectory(root: path)
        do {
            let protection = try await pool.run { () throws -> Protection in
                // Fails when there is no such directory.
                _ = try fileSystem.list(path)
                guard try fileSystem.status(of: directory.lock) != nil else { return .nothing }
                let lock = try fileSystem.open(directory.lock, .read)
                if besideOthers, try isTaken(lock) { return .otherProcess }
                if !besideOthers { try lock.lockWithinMoments() }
                return .lock(lock)
            }
            return DiskInspection(
                directory, fileSystem: fileSystem, pool: pool, protection: protection)
        } catch let error as FileError {
            throw error.code == .locked ? .inUse(directory: path) : .unusable(error)
        } catch {
            preconditionFailure("only the file system throws here")
        }
    }

    /// Takes the lock, or closes the file when another process holds it.
    private static func isTaken(_ lock: any OpenFile) throws(FileError) -> Bool {
        do throws(FileError) {
            try lock.lockExclusively()
            return false
        } catch {
            guard error.code == .locked else { throw error }
            try lock.close()
            return true
        }
    }

    /// Checks at the end of an inspection that it was not disturbed.
    ///
    /// - Throws: `inUse` when a process started to use a directory that had no lock file: the
    ///   inspection may have seen a change in progress.
    package func confirmUndisturbed() async throws {
        guard case .nothing = protection else { return }
        let path = directory.lock
        let isUsed = try await onPool { [fileSystem] in try fileSystem.status(of: path) != nil }
        if isUsed { throw DiskStoreError.inUse(directory: directory.root) }
    }

    /// Releases the lock, if this inspection took it.
    package func close() async {
        guard case .lock(let file) = protection else { return }
        // Closing the descriptor releases the lock. Nothing was written, so an error has no effect.
        try? await pool.run { try file.close() }
    }

    /// The directory's ``DiskStore/identity()``; nil when none was recorded yet.
    package func identity() async throws(ByteStoreError) -> String? {
        let path = directory.identity
        return try await onPool { [fileSystem] in
            guard try fileSystem.status(of: path) != nil else { return nil }
            let file = try fileSystem.open(path, .read)
            var bytes = [UInt8](repeating: 0, count: 32)
            let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 0) }
            try file.close()
            return count < bytes.count ? nil : "disk:\(String(decoding: bytes, as: UTF8.self))"
        }
    }

    package func byteCount(of bytes: StoredBytes) async throws -> Int64? {
        let path = directory.path(of: bytes)
        return try await onPool { [fileSystem] in try fileSystem.status(of: path)?.byteCount }
    }

    package func open(_ bytes: StoredBytes) async throws -> any BlobReader {
        let path = directory.path(of: bytes)
        return try await onPool { [self] in
            do throws(FileError) {
                let file = try fileSystem.open(path, .read)
                return InspectedFile(file, byteCount: try file.status().byteCount, pool: pool)
            } catch  where error.code == .notFound {
                throw ByteStoreError.notFound
            }
        }
    }

    package func forEachEntry(_ body: (StoredEntry) async throws -> Void) async throws {
        for name in try await names(in: directory.quarantine) {
            try await body(.quarantined(name))
        }
        try await forEachFile(below: directory.staging, depth: 1) { shelves, name in
            let isOnShelf = shelves == [String(name.prefix(2))]
            if SessionID.isWellFormed(name), isOnShelf {
                try await body(.bytes(.staging(StagingKey(name))))
            } else if let rival = RivalName(fileName: name), isOnShelf {
                // It belongs to the session, with or without a row.
                try await body(.bytes(.staging(rival.key)))
            } else {
                try await body(.unknown(name))
            }
        }
        try await forEachFile(below: directory.blobs, depth: 2) { shelves, name in
            guard let digest = SHA256Digest(hex: name), digest.hex == name,
                shelves == [String(name.prefix(2)), String(name.dropFirst(2).prefix(2))]
            else { return try await body(.unknown(name)) }
            try await body(.bytes(.blob(digest)))
        }
        for name in try await names(in: directory.superseded) {
            let parts = name.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count == 2, let digest = SHA256Digest(hex: parts[0]),
                SessionID.isWellFormed(parts[1]), parts[0] == digest.hex
            else {
                try await body(.unknown(name))
                continue
            }
            try await body(.bytes(.superseded(digest, by: StagingKey(String(parts[1])))))
        }
    }

    /// Calls the closure with each file at the given depth below the path, and the names of its
    /// directories. Also passes misplaced entries: files at a smaller depth, and directories where
    /// a file should be. The latter come without directory names, so no caller accepts them.
    ///
    /// Holds the names of one directory in memory at a time.
    private func forEachFile(
        below path: String, shelves: [String] = [], depth: Int,
        _ body: ([String], String) async throws -> Void
    ) async throws {
        for name in try await names(in: path) {
            let child = "\(path)/\(name)"
            let isDirectory = try await onPool { [fileSystem] in
                try fileSystem.status(of: child)?.isDirectory == true
            }
            if isDirectory, shelves.count < depth {
                try await forEachFile(below: child, shelves: shelves + [name], depth: depth, body)
            } else {
                // A directory is not the file that its name stands for.
                try await body(isDirectory ? [] : shelves, name)
            }
        }
    }

    /// Names in a directory; none when it is absent, as in a directory that was never used.
    private func names(in path: String) async throws(ByteStoreError) -> [String] {
        try await onPool { [fileSystem] in
            guard try fileSystem.status(of: path)?.isDirectory == true else { return [] }
            return try fileSystem.list(path).filter { $0 != DataDirectory.scratchName }
        }
    }

    private func onPool<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> Value
    ) async throws(ByteStoreError) -> Value {
        do {
            return try await pool.run(work)
        } catch {
            throw ByteStoreError(error)
        }
    }
}

extension DataDirectory {
    fileprivate func path(of bytes: StoredBytes) -> String {
        switch bytes {
        case .staging(let key): staging(key)
        case .blob(let digest): blob(digest)
        case .superseded(let digest, let key): superseded(digest, by: key)
        }
    }
}
