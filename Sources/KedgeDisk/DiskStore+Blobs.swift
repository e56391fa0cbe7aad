internal import Glibc
package import KedgeEngine
internal import KedgeFiles
package import KedgeModel

extension DiskStore {
    /// Turns a staging file into a blob. Every step can be repeated:
    ///
    /// 1. Create the blob's directory, durably.
    /// 2. Link an existing blob of the same size to a name among the superseded ones, durably.
    /// 3. Rename the staging file to the blob, which replaces the old blob's name.
    /// 4. Sync both directories.
    ///
    /// The row of step 2 is written before this call. Between any two steps the name leads to all
    /// bytes of one copy.
    package func promote(_ file: StagedFile, to digest: SHA256Digest) async throws -> String? {
        let (key, byteCount) = (file.key, file.byteCount)
        try await onPool { [self] in
            let blob = directory.blob(digest)
            let parent = directory.blobDirectory(of: digest)
            let staging = directory.staging(key)
            try names.makeDirectory(parent, upTo: directory.root)
            let isThere = try fileSystem.status(of: blob)?.byteCount == byteCount
            // The staging file has no bytes when an earlier call has renamed it, or the file is
            // empty.
            let stagedCount = try fileSystem.status(of: staging)?.byteCount ?? 0
            let renames = stagedCount > 0 || !isThere
            if renames {
                // An empty file never had a writer that would have created its staging file.
                if byteCount == 0 { try makeEmptyFile(staging, in: key) }
                try cut(staging, to: byteCount)
                // A blob of another size is certainly damaged.
                if isThere, byteCount > 0, file.keepsPrevious { try supersede(digest, by: key) }
                try fileSystem.rename(staging, to: blob)
            }
            // Also for an existing blob: an earlier call may have stopped before this step.
            try names.sync(parent, hasChanged: renames)
            let removed = try fileSystem.remove(staging)
            let stagingParent = directory.stagingDirectory(of: key)
            if try fileSystem.status(of: stagingParent) != nil {
                try names.sync(stagingParent, hasChanged: renames || removed)
            }
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
            // An earlier call stopped after this step, or its copy is no longer the blob.
            case .exists:
                guard try !isSameFile(blob, copy) else { break }
                try fileSystem.remove(copy)
                try fileSystem.link(blob, to: copy)
            // The blob has no name for a moment; after a kill, the next finalize repairs this.
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
            } catch {
                throw failure(ofOpening: error)
            }
        }
    }

    /// Returns the error for a blob that cannot be opened. Without the directory of all blobs
    /// nothing is known about a single one.
    private func failure(ofOpening error: FileError) -> ByteStoreError {
        guard error.code == .notFound || error.number == ENOTDIR else {
            return ByteStoreError(error)
        }
        // A directory that cannot be looked at is as good as none.
        let isDirectory = (try? fileSystem.status(of: directory.blobs))?.isDirectory == true
        return isDirectory
            ? .notFound : .unavailable("\(directory.blobs) cannot be read as a directory")
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
            // rename(2) leaves both names in place when they are the same file.
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

    /// Truncates the staging file to the blob's length. Bytes beyond it were written by a stream
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
