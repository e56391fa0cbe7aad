package import KedgeEngine
internal import KedgeFiles
package import KedgeModel

extension DiskStore {
    /// Turns a staging file into a blob, in an order of which every step can be repeated:
    ///
    /// 1. the directory of the blob is there, durably;
    /// 2. a blob of the same size gets a second name among the superseded ones, durably;
    /// 3. the staging file is renamed to the blob, which replaces the name of the old one;
    /// 4. both directories are synced.
    ///
    /// The row of step 2 was written before. Between any two steps the name leads to all bytes of one copy.
    package func promote(_ file: StagedFile, to digest: SHA256Digest) async throws -> String? {
        let (key, byteCount) = (file.key, file.byteCount)
        try await onPool { [self] in
            let blob = directory.blob(digest)
            let parent = directory.blobDirectory(of: digest)
            let staging = directory.staging(key)
            try names.makeDirectory(parent, upTo: directory.root)
            let isThere = try fileSystem.status(of: blob)?.byteCount == byteCount
            // Without its bytes an earlier call has renamed the staging file, or the file has none.
            let stagedCount = try fileSystem.status(of: staging)?.byteCount ?? 0
            if stagedCount > 0 || !isThere {
                // A file without bytes never had a writer that would have made its staging file.
                if byteCount == 0 { try makeEmptyFile(staging, in: key) }
                try cut(staging, to: byteCount)
                // A blob of another size is damaged for certain.
                if isThere, byteCount > 0, file.keepsPrevious { try supersede(digest, by: key) }
                try fileSystem.rename(staging, to: blob)
            }
            // Also when the blob was there: an earlier call may have stopped before this.
            try names.sync(parent)
            try fileSystem.remove(staging)
            let stagingParent = directory.stagingDirectory(of: key)
            if try fileSystem.status(of: stagingParent) != nil { try names.sync(stagingParent) }
        }
        return nil
    }

    /// Keeps the present blob under another name, durably.
    private func supersede(_ digest: SHA256Digest, by key: StagingKey) throws(FileError) {
        let (blob, copy) = (directory.blob(digest), directory.superseded(digest, by: key))
        do throws(FileError) {
            try fileSystem.link(blob, to: copy)
        } catch {
            switch error.code {
            // An earlier call has done this and stopped; or what it kept is not the blob any more.
            case .exists:
                guard try !isSameFile(blob, copy) else { break }
                try fileSystem.remove(copy)
                try fileSystem.link(blob, to: copy)
            // For a moment the blob has no name then; a kill in it is made good by the next finalize.
            case _ where error.isUnsupportedLink: try fileSystem.rename(blob, to: copy)
            default: throw error
            }
        }
        try names.sync(directory.superseded)
    }

    private func isSameFile(_ left: String, _ right: String) throws(FileError) -> Bool {
        let (left, right) = (try fileSystem.status(of: left), try fileSystem.status(of: right))
        return left?.device == right?.device && left?.inode == right?.inode
    }

    package func supersedes(_ key: StagingKey, _ name: BlobName) async throws -> Bool {
        try await onPool { [self] in
            guard name.byteCount > 0, try fileSystem.status(of: directory.staging(key)) != nil
            else { return false }
            return try fileSystem.status(of: directory.blob(name.digest))?.byteCount
                == name.byteCount
        }
    }

    private func makeEmptyFile(_ staging: String, in key: StagingKey) throws {
        try names.makeDirectory(directory.stagingDirectory(of: key), upTo: directory.root)
        try fileSystem.open(staging, .openOrCreate).close()
    }

    package func openBlob(_ name: BlobName) async throws -> any BlobReader {
        try await open(directory.blob(name.digest))
    }

    package func openSuperseded(_ blob: SupersededBlob) async throws -> any BlobReader {
        try await open(directory.superseded(blob.digest, by: blob.key))
    }

    private func open(_ path: String) async throws -> any BlobReader {
        try await onPool { [self] in
            do throws(FileError) {
                let file = try fileSystem.open(path, .read)
                return DiskBlobReader(file, byteCount: try file.status().byteCount, store: self)
            } catch  where error.code == .notFound {
                throw ByteStoreError.notFound
            }
        }
    }

    package func removeSuperseded(_ blob: SupersededBlob) async throws {
        try await onPool { [self] in
            try remove(
                directory.superseded(blob.digest, by: blob.key), from: directory.superseded)
        }
    }

    package func restoreSuperseded(_ blob: SupersededBlob) async throws -> Bool {
        try await onPool { [self] in
            let copy = directory.superseded(blob.digest, by: blob.key)
            let parent = directory.blobDirectory(of: blob.digest)
            guard try fileSystem.status(of: copy) != nil else { return false }
            try names.makeDirectory(parent, upTo: directory.root)
            try fileSystem.rename(copy, to: directory.blob(blob.digest))
            // Two names of one file stay as they are (rename(2)).
            try fileSystem.remove(copy)
            try names.sync(parent)
            try names.sync(directory.superseded)
            return true
        }
    }

    package func removeBlob(_ digest: SHA256Digest) async throws {
        try await onPool { [self] in
            try remove(directory.blob(digest), from: directory.blobDirectory(of: digest))
        }
    }

    /// Makes the staging file exactly as long as the blob. Bytes beyond it were written by a stream
    /// that no row counts.
    private func cut(_ staging: String, to byteCount: Int64) throws {
        guard let found = try fileSystem.status(of: staging), found.byteCount >= byteCount else {
            throw ByteStoreError.notFound
        }
        guard found.byteCount > byteCount else { return }
        let file = try fileSystem.open(staging, .readWrite)
        try file.truncate(to: byteCount)
        try file.syncData()
        try file.close()
    }
}
