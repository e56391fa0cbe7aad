package import KedgeEngine
internal import KedgeFiles
internal import KedgeModel

// The files of rivals, each beside the staging file of its session.
extension DiskStore {
    /// Implements ``StagingArea/openRival(_:isKept:)``. The first save makes the name of a new file
    /// durable.
    func openRival(
        of key: StagingKey, _ range: ChunkRange, isKept: Bool
    ) async throws -> any StagingArea {
        let name = RivalName(key: key, index: range.index)
        let parent = directory.stagingDirectory(of: key)
        let file = try await onPool { [self] in
            try names.makeDirectory(parent, upTo: directory.root)
            return range.byteCount > 0
                ? try openAgain(name, range.byteCount) : try openNew(name, isKept: isKept)
        }
        return DiskStagingArea(
            file, of: key, store: self, origin: range.start,
            unsyncedParent: range.byteCount > 0 ? nil : parent)
    }

    private func openAgain(_ name: RivalName, _ byteCount: Int64) throws -> any OpenFile {
        let path = directory.rival(name)
        guard let found = try fileSystem.status(of: path), found.byteCount >= byteCount else {
            throw ByteStoreError.notFound
        }
        return try fileSystem.open(path, .readWrite)
    }

    private func openNew(_ name: RivalName, isKept: Bool) throws -> any OpenFile {
        let path = isKept ? directory.rival(name) : directory.unnamedRival(name)
        let file = try fileSystem.open(path, .openOrCreate)
        // An earlier process may have left a file of this name.
        try file.truncate(to: 0)
        if !isKept { try fileSystem.remove(path) }
        return file
    }

    /// Copies bytes of a staging file to a rival's file, durably; blocks.
    func copyToRival(_ name: RivalName, _ range: ChunkRange, from staging: any OpenFile) throws {
        let file = try openNew(name, isKept: true)
        try withUnsafeTemporaryAllocation(byteCount: 256 << 10, alignment: 4096) { memory in
            var done: Int64 = 0
            while done < range.byteCount {
                let count = min(memory.count, Int(range.byteCount - done))
                let part = UnsafeMutableRawBufferPointer(rebasing: memory[..<count])
                guard try staging.read(into: part, at: range.start + done) == count else {
                    throw ByteStoreError.notFound
                }
                try file.write(UnsafeRawBufferPointer(part), at: done)
                done += Int64(count)
            }
        }
        try file.syncData()
        try file.close()
        try names.sync(directory.stagingDirectory(of: name.key))
    }

    package func removeRival(_ name: RivalName) async throws {
        // Not durably: if a power loss brings the file back, the next start removes it.
        _ = try await onPool { [self] in try fileSystem.remove(directory.rival(name)) }
    }

    package func rivals() async throws -> [RivalName] {
        try await onPool { [self] in
            try fileSystem.list(directory.staging)
                .compactMap { directory.stagingDirectory(named: $0) }
                .filter { try fileSystem.status(of: $0)?.isDirectory == true }
                .flatMap { path in
                    try fileSystem.list(path).compactMap { RivalName(fileName: $0) }
                        .filter { directory.stagingDirectory(of: $0.key) == path }
                }
        }
    }

    /// Paths of the files beside a staging file; blocks.
    func besides(_ key: StagingKey) throws -> [String] {
        let parent = directory.stagingDirectory(of: key)
        guard try fileSystem.status(of: parent) != nil else { return [] }
        return try fileSystem.list(parent).filter { $0.hasPrefix("\(key.text).") }
            .map { "\(parent)/\($0)" }
    }
}
