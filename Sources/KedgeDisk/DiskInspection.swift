package import KedgeEngine
package import KedgeFiles
internal import KedgeModel

/// Looks at a data directory without changing anything in it, not even a time or a missing directory.
///
/// It holds the lock meanwhile, or looks beside the process that has it. A directory without a lock file, a restored copy for example, is looked
/// at without one, because making it would be a change; ``confirmUndisturbed()`` tells afterwards
/// whether a process came and began to use it.
package final class DiskInspection: CheckedFiles {
    private let directory: DataDirectory
    private let fileSystem: any FileSystem
    private let pool: BlockingPool
    private let hold: Hold

    /// What keeps others away.
    enum Hold: Sendable {
        /// The lock, taken for this inspection.
        case lock(any OpenFile)
        /// The lock of a store of this process, which outlives this inspection.
        case store
        /// Another process has the lock and goes on working.
        case otherProcess
        /// Nothing: there was no lock file.
        case nothing
    }

    init(
        _ directory: DataDirectory, fileSystem: any FileSystem, pool: BlockingPool, hold: Hold
    ) {
        self.directory = directory
        self.fileSystem = fileSystem
        self.pool = pool
        self.hold = hold
    }

    /// True while another process changes what is looked at.
    package var isShared: Bool {
        if case .otherProcess = hold { true } else { false }
    }

    /// Takes an existing directory.
    ///
    /// - Parameter besideOthers: Looks also while another process uses the directory.
    /// - Throws: `inUse` while a process uses it, `unusable` when it cannot be read.
    package static func open(
        _ path: String, pool: BlockingPool, fileSystem: any FileSystem = POSIXFileSystem(),
        besideOthers: Bool = false
    ) async throws(DiskStoreError) -> DiskInspection {
        let directory = DataDirectory(root: path)
        do {
            let hold = try await pool.run { () throws -> Hold in
                // Fails when there is no such directory.
                _ = try fileSystem.list(path)
                guard try fileSystem.status(of: directory.lock) != nil else { return .nothing }
                let lock = try fileSystem.open(directory.lock, .read)
                if besideOthers, try isTaken(lock) { return .otherProcess }
                if !besideOthers { try lock.lockExclusively() }
                return .lock(lock)
            }
            return DiskInspection(directory, fileSystem: fileSystem, pool: pool, hold: hold)
        } catch let error as FileError {
            throw error.code == .locked ? .inUse(directory: path) : .unusable(error)
        } catch {
            preconditionFailure("only the file system throws here")
        }
    }

    /// Takes the lock, or closes the file when another process has it.
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

    /// Called at the end of a check.
    ///
    /// - Throws: `inUse` when a process began to use a directory that had no lock file: what was seen
    ///   may have been in the middle of a change.
    package func confirmUndisturbed() async throws {
        guard case .nothing = hold else { return }
        let path = directory.lock
        let isUsed = try await onPool { [fileSystem] in try fileSystem.status(of: path) != nil }
        if isUsed { throw DiskStoreError.inUse(directory: directory.root) }
    }

    /// Gives the lock up, when it was taken for this inspection.
    package func close() async {
        guard case .lock(let file) = hold else { return }
        // The lock goes with the descriptor, and nothing was written that an error could be about.
        try? await pool.run { try file.close() }
    }

    /// What ``DiskStore/identity()`` answers; nil when the directory was never asked for it.
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
                // It belongs to the session, whether a row counts it or not.
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

    /// Hands out what lies so many directories below the path, with the directories' names; and what
    /// is no directory before that, or one where a file should be, under a name that nobody knows.
    ///
    /// One directory's names are in memory at a time.
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
                // A directory is not the file whose name it has.
                try await body(isDirectory ? [] : shelves, name)
            }
        }
    }

    /// Names in a directory; none when it is absent, as in a place that was never used.
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
