package import KedgeEngine
internal import KedgeFiles
package import KedgeModel

extension DiskStore: RepairableBytes {
    /// Looks at the directory that this store holds.
    package var inspection: DiskInspection {
        DiskInspection(directory, fileSystem: fileSystem, pool: pool, hold: .store)
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
            // The new name first: were the old one gone and the new one lost, the bytes would be.
            try names.sync(directory.quarantine)
            try names.sync(parent)
        }
    }

    /// Never replaces what an earlier quarantine of the same blob has kept.
    private func moveToQuarantine(_ source: String, _ digest: SHA256Digest) throws(FileError) {
        var number = 1
        while true {
            do throws(FileError) {
                // 64 hexadecimal digits and a number: no name can lead out of the directory.
                let target = "\(directory.quarantine)/\(digest.hex).\(number)"
                return try fileSystem.renameWithoutReplacing(source, to: target)
            } catch  where error.code == .exists {
                number += 1
            }
        }
    }
}
