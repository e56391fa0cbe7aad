package import KedgeEngine
internal import KedgeFiles
internal import KedgeModel

extension DiskStore {
    package func openStaging(_ key: StagingKey) async throws -> any StagingArea {
        let file = try await onPool { [self] in
            let parent = directory.stagingDirectory(of: key)
            try names.makeDirectory(parent, upTo: directory.root)
            let (file, isNew) = try openOrCreate(directory.staging(key))
            // Also for an existing file: the process that created it may have died before this
            // sync.
            try names.sync(parent, hasChanged: isNew)
            return file
        }
        return DiskStagingArea(file, of: key, store: self)
    }

    private func openOrCreate(
        _ path: String
    ) throws(FileError) -> (file: any OpenFile, isNew: Bool) {
        do throws(FileError) {
            return (try fileSystem.open(path, .createNew), true)
        } catch  where error.code == .exists {
            return (try fileSystem.open(path, .openOrCreate), false)
        }
    }

    package func removeStaging(
        _ key: StagingKey, state: String?, keeping location: String?
    ) async throws {
        try await onPool { [self] in
            for path in try besides(key) { try fileSystem.remove(path) }
            try remove(directory.staging(key), from: directory.stagingDirectory(of: key))
        }
    }

    package func stagingByteCount(_ key: StagingKey) async throws -> Int64? {
        try await onPool { [self] in
            try fileSystem.status(of: directory.staging(key))?.byteCount
        }
    }

    package func stagingKeys() async throws -> [StagingKey] {
        try await onPool { [self] in
            let directories = try fileSystem.list(directory.staging)
                .compactMap { directory.stagingDirectory(named: $0) }
            var keys: [StagingKey] = []
            for path in directories where try fileSystem.status(of: path)?.isDirectory == true {
                // A name that is not a key belongs to another program and is left alone.
                let found = try fileSystem.list(path).filter { SessionID.isWellFormed($0) }
                keys += found.map { StagingKey($0) }.filter {
                    directory.stagingDirectory(of: $0) == path
                }
            }
            return keys
        }
    }

    package func quarantine(_ key: StagingKey) async throws {
        try await onPool { [self] in
            let sources = try [directory.staging(key)].filter {
                try fileSystem.status(of: $0) != nil
            }
            let all = try sources + besides(key)
            guard !all.isEmpty else { return }
            for source in all { try moveToQuarantine(source, key) }
            // The new name first: if the old name were gone and the new one not durable, the bytes
            // could be lost.
            try names.sync(directory.quarantine)
            try names.sync(directory.stagingDirectory(of: key))
        }
    }

    /// Renames the file, without replacing an earlier quarantined file of the same key.
    private func moveToQuarantine(_ source: String, _ key: StagingKey) throws(FileError) {
        var number = 1
        while true {
            do throws(FileError) {
                let target = directory.quarantine(key, number: number)
                return try fileSystem.renameWithoutReplacing(source, to: target)
            } catch  where error.code == .exists {
                number += 1
            }
        }
    }

    /// Removes a file durably; an absent one is no error.
    func remove(_ path: String, from parent: String) throws(FileError) {
        let wasThere = try fileSystem.remove(path)
        // Also when the file is absent: an earlier call may have failed after its removal.
        if try fileSystem.status(of: parent) != nil {
            try names.sync(parent, hasChanged: wasThere)
        }
    }
}
