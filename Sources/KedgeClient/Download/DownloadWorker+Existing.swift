internal import KedgeFiles
internal import KedgeModel

// What is done with a file that is at the destination already.
extension DownloadWorker {
    /// What is at the destination already: the same file is success, another one is refused before
    /// a byte is fetched.
    func acceptExistingDestination() async throws -> Bool {
        guard !download.overwrites else { return false }
        let (files, path) = (files, download.destinationPath)
        let (expectedHash, expectedSize) = (download.expectedHash, download.expectedSize)
        let found: Existing = try await context.onDisk("look at", "destination") {
            guard try files.status(of: path) != nil else { return .nothing }
            guard let expectedHash, let expectedSize,
                try Self.holds(path, digest: expectedHash, size: expectedSize, files: files)
            else { return .anotherFile }
            return .sameFile
        }
        guard found != .nothing else { return false }
        guard found == .sameFile, let expectedHash, let expectedSize else {
            throw TransferError(
                .destinationExists, operation: "download", resource: path,
                explanation: "The destination exists and is another file.")
        }
        // Fetched all the same, and put in its place: see ``rename(_:temp:digest:size:files:)``.
        guard !download.isDestinationInDoubt else { return false }
        try await settleOnFound(digest: expectedHash, size: expectedSize)
        return true
    }

    /// What there is at the destination before the first byte is fetched.
    private enum Existing {
        case nothing
        case anotherFile
        case sameFile
    }

    /// Completes the download with a file that was found at the destination, once it is durable.
    func settleOnFound(digest: SHA256Digest, size: Int64) async throws {
        let (files, path, scratch) = (files, download.destinationPath, download.tempPath)
        try await context.store.doubtDestination(of: context.lease)
        let mayChangeFolder = try await context.onDisk("sync", "destination") {
            try files.open(path, .read).syncData()
            return try Self.makeNameDurable(path, scratch: scratch, files: files)
        }
        // Where this client may not change the folder it has left neither a name nor a file.
        if mayChangeFolder { try await deleteTempFile() }
        try await complete(digest: digest, size: size)
    }

    /// Syncs the name of a file that was found in place: it may be this client's own from before, cut
    /// off at that sync.
    ///
    /// - Returns: False when this client may not change the folder.
    private static func makeNameDurable(
        _ path: String, scratch: String, files: any FileSystem
    ) throws(FileError) -> Bool {
        do throws(FileError) {
            try files.syncDirectoryAnew(TempFile.directory(of: path), scratch: scratch)
            return true
        } catch  where [.permission, .readOnly].contains(error.code) {
            return false
        }
    }
}
