package import KedgeEngine
internal import KedgeFiles
package import KedgeModel

extension DiskStore: RepairableBytes {
    /// An inspection of this store's directory.
    package var inspection: DiskInspection {
        DiskInspection(directory, fileSystem: fileSystem, pool: pool, protection: .store)
    }

    package func quarantine(_ digest: SHA256Digest) async throws {
        try await quarantine(
            directory.blob(digest), in: directory.blobDirectory(of: digest), digest)
    }

    package func quarantine(_ digest: SHA256Digest, supersededBy key: StagingKey) async throws {
        try await quarantine(
            directory.superseded(digest, by: key), in: directory.superseded, digest)
    }

    private func quarantine(
        _ source: String, in parent: String, _ digest: SHA256Digest
    ) async throws {
        try await onPool { [self] in
            guard try fileSystem.status(of: source) != nil else { return }
            try moveToQuarantine(source, digest)
            // The new name first: if the old name were gone and the new one not durable, the bytes
            // could be lost.
            try names.sync(directory.quarantine)
            try names.sync(parent)
        }
    }

    /// Renames the file, without replacing an earlier quarantined file of the same blob.
    private func moveToQuarantine(_ source: String, _ digest: SHA256Digest) throws(FileError) {
        var number = 1
        while true {
            do throws(FileError) {
                // Hexadecimal digits and a number: the path cannot leave the directory.
                let target = "\(directory.quarantine)/\(digest.hex).\(number)"
                return try fileSystem.renameWithoutReplacing(source, to: target)
            } catch  where error.code == .exists {
                number += 1
            }
        }
    }
}
