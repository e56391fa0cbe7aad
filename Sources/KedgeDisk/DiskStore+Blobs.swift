package import KedgeEngine
internal import KedgeFiles
package import KedgeModel

extension DiskStore {
    package func promote(_ file: StagedFile, to digest: SHA256Digest) async throws -> String? {
        let (key, byteCount) = (file.key, file.byteCount)
        try await onPool { [self] in
            let blob = directory.blob(digest)
            let parent = directory.blobDirectory(of: digest)
            let staging = directory.staging(key)
            try names.makeDirectory(parent, upTo: directory.root)
            // A blob of another size is damaged, and the staging file cures it.
            let isThere = try fileSystem.status(of: blob)?.byteCount == byteCount
            if !isThere {
                // A file without bytes never had a writer that would have made its staging file.
                if byteCount == 0 { try makeEmptyFile(staging, in: key) }
                try cut(staging, to: byteCount)
                try fileSystem.rename(staging, to: blob)
            }
            // Also when the blob was there: an earlier call may have stopped before this.
            try names.sync(parent)
            if isThere { try fileSystem.remove(staging) }
            let stagingParent = directory.stagingDirectory(of: key)
            if try fileSystem.status(of: stagingParent) != nil { try names.sync(stagingParent) }
        }
        return nil
    }

    private func makeEmptyFile(_ staging: String, in key: StagingKey) throws {
        try names.makeDirectory(directory.stagingDirectory(of: key), upTo: directory.root)
        try fileSystem.open(staging, .openOrCreate).close()
    }

    package func openBlob(_ name: BlobName) async throws -> any BlobReader {
        try await onPool { [self] in
            do throws(FileError) {
                let file = try fileSystem.open(directory.blob(name.digest), .read)
                return DiskBlobReader(file, byteCount: try file.status().byteCount, store: self)
            } catch  where error.code == .notFound {
                throw ByteStoreError.notFound
            }
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
