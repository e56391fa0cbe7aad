internal import KedgeFiles
internal import KedgeModel
internal import Logging

extension DownloadWorker {
    func wholeFileDigest(_ hash: FileHasher, size: Int64) async throws -> SHA256Digest {
        guard let digest = try await hash.digest(ofSize: size, role: .downloadFolder) else {
            // Another process truncated the temporary file: none of its bytes count any more.
            try await context.store.discardProgress(of: context.lease)
            throw DownloadRestart(error: integrityError(cause: nil))
        }
        return digest
    }

    /// Compares the file's digest with the expected one.
    ///
    /// On a mismatch, fetches again only the chunks that fail their own digests. Without chunk
    /// digests, the whole file is fetched again, once.
    func verify(_ digest: SHA256Digest, temp: TempFile) async throws {
        guard let expected = download.expectedHash, expected != digest else { return }
        context.logger.error(
            "integrity mismatch",
            metadata: [
                "transfer": "\(context.lease.id)", "expected": "\(expected)",
                "computed": "\(digest)",
            ])
        try await context.store.recordMismatch(
            DigestMismatch(chunk: nil, expectedSha256: expected, actualSha256: digest),
            of: context.lease)
        let count = try await context.store.recordIntegrityFailure(
            context.lease, message: "The file arrived damaged; fetching it again.", answer: nil)
        guard remote.chunkDigests != nil, !isSequential else {
            return try await beginAnew(afterFailures: count)
        }
        let wrong = try await wrongChunks(in: temp)
        let error = wrong.isEmpty ? Self.otherFile : Self.damaged(wrong)
        if !wrong.isEmpty { try await context.store.discardChunks(wrong, of: context.lease) }
        // Correct chunks are read once more but not fetched again.
        guard count < (wrong.isEmpty ? 2 : Self.maxFetchCount) else { throw error }
        throw DownloadRestart(error: error)
    }

    /// Starts the download over, because no digest identifies the wrong bytes.
    private func beginAnew(afterFailures count: Int) async throws {
        let error = integrityError(cause: nil)
        try await deleteTempFile()
        guard count <= 1 else { throw error }
        if remote.chunkSize == nil {
            // Smaller chunks risk less on a link or in memory that flips bits.
            let smaller = max(256 << 10, download.chunkSize / 2)
            try await context.store.setRemote(
                remote, chunkSize: smaller, restarts: true, answer: nil, of: context.lease)
        }
        throw DownloadRestart(error: error)
    }

    private static let otherFile = TransferError(
        .integrityMismatch, operation: "verify",
        explanation: "Every chunk matches the SHA-256 that the server announced for it, but the"
            + " file does not match the expected one. Received bytes are kept.")

    private static func damaged(_ chunks: [Int]) -> TransferError {
        let names = chunks.prefix(5).map(String.init).joined(separator: ", ")
        let more = chunks.count > 5 ? " and \(chunks.count - 5) more" : ""
        return TransferError(
            .integrityMismatch, operation: "verify",
            explanation: "These chunks did not match the SHA-256 that the server announced, each"
                + " time they were fetched: \(names)\(more). The others are kept.")
    }

    private func wrongChunks(in temp: TempFile) async throws -> [Int] {
        guard let digests = remote.chunkDigests, let layout = download.layout, !isSequential else {
            return []
        }
        return try await context.onDisk("verify chunks", .downloadFolder) {
            try digests.indices.filter { index in
                guard let range = layout.range(ofChunk: index) else { return false }
                return try TempFile.digest(of: temp.file, range: range) != digests[index]
            }
        }
    }

    private func integrityError(cause: (any Error)?) -> TransferError {
        TransferError(
            .integrityMismatch, operation: "verify",
            explanation: "The file did not match the announced SHA-256, twice;"
                + " another network may help.",
            cause: cause)
    }

    func deleteTempFile() async throws {
        let (files, path) = (files, download.tempPath)
        // Removed while locked, for the reason given in ``makeTempFile(size:)``.
        try await context.onDisk("remove", .downloadFolder) { _ = try files.remove(path) }
        closeTempFile()
        try await context.store.discardProgress(of: context.lease)
    }

    /// Gives the verified file its final name: syncs, records, renames, syncs the directory,
    /// completes.
    ///
    /// The file stays open, and its name is checked before and after the rename. Another program
    /// with write access to the folder could otherwise put an unverified file in its place.
    func promote(_ temp: TempFile, digest: SHA256Digest, size: Int64) async throws {
        let (files, download, time) = (files, download, keptTime())
        let permissions = try await context.onDisk("sync", .downloadFolder) {
            let permissions = TempFile.permissions(
                of: try temp.file.status(),
                replacing: try files.status(of: download.destinationPath))
            // Only the unfinished file is private. A file system without permissions is no failure.
            // The owner may write until the file has its name: after a kill, the next run opens it.
            try? temp.file.setPermissions(permissions | 0o600)
            // After the last write, which would change it. Best effort, too.
            if let time { try? temp.file.setModificationTime(time.nanosecondsSinceEpoch) }
            try temp.file.syncData()
            return permissions
        }
        guard
            try await context.store.beginPromotion(
                fileHash: digest, size: size,
                readBackByteCount: wholeFile?.readBackByteCount ?? 0, known: download,
                of: context.lease)
        else {
            throw DownloadRestart(
                error: TransferError(
                    .destinationExists, operation: "promote",
                    explanation: "The options of this download keep changing."))
        }
        let outcome = try await context.onDisk("promote", .destination) {
            let outcome = try Self.rename(
                download, temp: temp, digest: digest, size: size, files: files)
            if outcome == .promoted {
                if permissions | 0o600 != permissions {
                    // Best effort, as before.
                    try? temp.file.setPermissions(permissions)
                }
                try files.syncDirectory(TempFile.directory(of: download.destinationPath))
            }
            return outcome
        }
        switch outcome {
        case .promoted:
            try await complete(digest: digest, size: size)
        case .sameContent(let found):
            // The destination already has the same content: success.
            try await settle(on: found, digest: digest, size: size)
        case .swapped:
            try await deleteTempFile()
            throw DownloadRestart(
                error: TransferError(
                    .integrityMismatch, operation: "promote", resource: download.destinationPath,
                    explanation: "Another program put a file at the destination."))
        }
    }

    /// Returns the modification time for the file; nil to leave its own.
    private func keptTime() -> FileTime? {
        guard download.keepsModificationTime else { return nil }
        if remote.modified == nil {
            context.logger.notice(
                "modification time unknown", metadata: ["transfer": "\(context.lease.id)"])
        }
        return remote.modified
    }

    /// The result of giving the file its final name.
    private enum Promotion: Equatable {
        case promoted
        /// The file at the temporary or final name is not the verified one.
        case swapped
        /// Another file with the same bytes has the name.
        case sameContent(FileStatus)
    }

    private static func rename(
        _ download: DownloadTransfer, temp: TempFile, digest: SHA256Digest, size: Int64,
        files: any FileSystem
    ) throws -> Promotion {
        let (source, target) = (download.tempPath, download.destinationPath)
        if try temp.isFound(at: target, files: files) {
            // An earlier run made the link and died before it removed the old name.
            try files.remove(source)
        } else {
            guard try temp.isFound(at: source, files: files) else { return .swapped }
            if download.overwrites {
                try files.rename(source, to: target)
            } else {
                do {
                    try files.renameWithoutReplacing(source, to: target)
                } catch  where error.code == .exists {
                    guard
                        let found = try verified(target, digest: digest, size: size, files: files)
                    else { throw error }
                    guard download.isDestinationInDoubt else { return .sameContent(found) }
                    // Nothing proves that the bytes at the destination are durable. These are.
                    try files.rename(source, to: target)
                }
            }
        }
        return try temp.isFound(at: target, files: files) ? .promoted : .swapped
    }

    /// Completes a promotion that an earlier run began: it may have renamed the file and died
    /// before it recorded that.
    ///
    /// - Returns: True when the download is complete now.
    func recoverPromotion() async throws -> Bool {
        guard let digest = download.fileHash, let inode = download.tempInode,
            let size = download.expectedSize
        else { return false }
        let (files, download) = (files, download)
        let isPromoted = try await context.onDisk("recover", .destination) {
            // Inode numbers are reused, so the bytes decide.
            let path = download.destinationPath
            guard try files.status(of: path)?.inode == inode,
                let found = try Self.verified(path, digest: digest, size: size, files: files)
            else { return false }
            // Synced before the rename. Synced again in case this is another program's file with
            // the same inode number and bytes.
            try Self.sync(found, at: path, files: files)
            // The temporary name may still exist.
            try files.remove(download.tempPath)
            // The earlier run may have failed at the sync of the name.
            try files.syncDirectoryAnew(TempFile.directory(of: path), scratch: download.tempPath)
            return true
        }
        guard isPromoted else { return false }
        try await complete(digest: digest, size: size)
        return true
    }

    func complete(digest: SHA256Digest, size: Int64) async throws {
        try await context.store.completeDownload(
            fileHash: digest, size: size,
            verification: download.expectedHash == nil ? .unverified : .sha256, of: context.lease)
    }
}
