internal import KedgeFiles
internal import KedgeModel
internal import Logging

extension DownloadWorker {
    func wholeFileDigest(_ hash: PrefixHash, size: Int64) async throws -> SHA256Digest {
        do {
            return try await withTaskCancellationHandler {
                try await hash.digest(ofSize: size)
            } onCancel: {
                hash.stop()
            }
        } catch is HashInterrupted {
            try Task.checkCancellation()
            // Somebody cut the temporary file: nothing of it counts any more.
            try await context.store.discardProgress(of: context.lease)
            throw DownloadRestart(error: integrityError(cause: nil))
        } catch {
            throw TransferError.reading(
                error, operation: "hash file", role: "download's folder")
        }
    }

    /// Holds the whole file against its expected SHA-256 (R94). On a mismatch, chunks that are wrong
    /// by their own digests are fetched again, and those that are right are kept; without digests
    /// everything is fetched again, once (R95, R121).
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
        // Fetching chunks again that are right leads nowhere: they are only read once more.
        guard count < (wrong.isEmpty ? 2 : Self.maxFetchCount) else { throw error }
        throw DownloadRestart(error: error)
    }

    /// Nothing says which bytes are wrong.
    private func beginAnew(afterFailures count: Int) async throws {
        let error = integrityError(cause: nil)
        try await deleteTempFile()
        guard count <= 1 else { throw error }
        if remote.chunkSize == nil {
            // Smaller pieces put less at stake on a link or in memory that flips bits.
            let smaller = max(256 << 10, download.chunkSize / 2)
            try await context.store.setRemote(
                remote, chunkSize: smaller, restarts: true, answer: nil, of: context.lease)
        }
        throw DownloadRestart(error: error)
    }

    private static let otherFile = TransferError(
        .integrityMismatch, operation: "verify",
        explanation: "Every chunk has the SHA-256 that the server announced for it, and the file"
            + " has another one than expected. What arrived is kept.")

    private static func damaged(_ chunks: [Int]) -> TransferError {
        let names = chunks.prefix(5).map(String.init).joined(separator: ", ")
        let more = chunks.count > 5 ? " and \(chunks.count - 5) more" : ""
        return TransferError(
            .integrityMismatch, operation: "verify",
            explanation: "These chunks had another SHA-256 than the server announced, each time"
                + " they were fetched: \(names)\(more). The others are kept.")
    }

    private func wrongChunks(in temp: TempFile) async throws -> [Int] {
        guard let digests = remote.chunkDigests, let layout = download.layout, !isSequential else {
            return []
        }
        return try await context.onDisk("verify chunks", "download's folder") {
            try digests.indices.filter { index in
                guard let range = layout.range(ofChunk: index) else { return false }
                return try TempFile.digest(of: temp.file, range: range) != digests[index]
            }
        }
    }

    private func integrityError(cause: (any Error)?) -> TransferError {
        TransferError(
            .integrityMismatch, operation: "verify",
            explanation: "The file arrived with another SHA-256 than announced, twice;"
                + " another network may help.",
            cause: cause)
    }

    func deleteTempFile() async throws {
        let (files, path) = (files, download.tempPath)
        // While it is locked, for the reason that ``makeTempFile(size:)`` tells.
        try await context.onDisk("remove", "download's folder") { _ = try files.remove(path) }
        closeTempFile()
        try await context.store.discardProgress(of: context.lease)
    }

    /// Gives the verified file its name: sync, note, rename, sync the directory, complete (R96).
    ///
    /// The file stays open, and before and after the rename its name must lead to it: whoever may rename
    /// in that folder can put another file in its place, which nobody has verified.
    func promote(_ temp: TempFile, digest: SHA256Digest, size: Int64) async throws {
        try await context.onDisk("sync", "download's folder") { try temp.file.syncData() }
        guard
            try await context.store.beginPromotion(
                fileHash: digest, size: size, known: download, of: context.lease)
        else {
            throw DownloadRestart(
                error: TransferError(
                    .destinationExists, operation: "promote",
                    explanation: "The options of this download keep changing."))
        }
        let (files, download) = (files, download)
        let outcome = try await context.onDisk("promote", "destination") {
            let outcome = try Self.rename(
                download, temp: temp, digest: digest, size: size, files: files)
            if outcome == .promoted {
                try files.syncDirectory(TempFile.directory(of: download.destinationPath))
            }
            return outcome
        }
        switch outcome {
        case .promoted:
            try await complete(digest: digest, size: size)
        case .sameContent(let found):
            // The very same content is there already: that is success (clients.md, lesson 3).
            try await settle(on: found, digest: digest, size: size)
        case .swapped:
            try await deleteTempFile()
            throw DownloadRestart(
                error: TransferError(
                    .integrityMismatch, operation: "promote", resource: download.destinationPath,
                    explanation: "Another program put a file in the place of this download."))
        }
    }

    /// What came of giving the file its name.
    private enum Promotion: Equatable {
        case promoted
        /// The file at the temporary or at the final name is not the verified one.
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
            // A link was made and the process died before the old name went.
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
                    // Nothing proves that those bytes are on the disk. These are.
                    try files.rename(source, to: target)
                }
            }
        }
        return try temp.isFound(at: target, files: files) ? .promoted : .swapped
    }

    /// An earlier run may have renamed the file and died before its record said so.
    ///
    /// - Returns: True when the download is complete now.
    func recoverPromotion() async throws -> Bool {
        guard let digest = download.fileHash, let inode = download.tempInode,
            let size = download.expectedSize
        else { return false }
        let (files, download) = (files, download)
        let isPromoted = try await context.onDisk("recover", "destination") {
            // The number of an inode comes around again, so the bytes have the last word.
            let path = download.destinationPath
            guard try files.status(of: path)?.inode == inode,
                let found = try Self.verified(path, digest: digest, size: size, files: files)
            else { return false }
            // They were synced before the rename, and are synced again in case that this is a file of others
            // with the number and the bytes of ours.
            try Self.sync(found, at: path, files: files)
            // Its other name may still be there.
            try files.remove(download.tempPath)
            // Perhaps it was the sync of the name that failed.
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
