internal import KedgeFiles
internal import KedgeModel

extension DownloadWorker {
    /// Completes the download if the destination already has the expected content.
    ///
    /// - Returns: False when the download has to run.
    /// - Throws: `DESTINATION_EXISTS` for another file, before a byte is fetched.
    func acceptExistingDestination() async throws -> Bool {
        guard !download.overwrites else { return false }
        let (files, path) = (files, download.destinationPath)
        let (expectedHash, expectedSize) = (download.expectedHash, download.expectedSize)
        let found: Existing = try await context.onDisk("look at", .destination) {
            guard try files.status(of: path) != nil else { return .nothing }
            guard let expectedHash, let expectedSize,
                let found = try Self.verified(
                    path, digest: expectedHash, size: expectedSize, files: files)
            else { return .anotherFile }
            return .sameContent(found)
        }
        if case .nothing = found { return false }
        guard case .sameContent(let file) = found, let expectedHash, let expectedSize else {
            throw Self.anotherFile(at: path)
        }
        // The file is fetched and replaced nevertheless: see `rename`.
        guard !download.isDestinationInDoubt else { return false }
        try await settle(on: file, digest: expectedHash, size: expectedSize)
        return true
    }

    /// The state of the destination before the first byte is fetched.
    private enum Existing {
        case nothing
        case anotherFile
        case sameContent(FileStatus)
    }

    private static func anotherFile(at path: String) -> TransferError {
        TransferError(
            .destinationExists, operation: "download", resource: path,
            explanation: "The destination exists and is a different file.")
    }

    /// Completes the download with a file found at the destination, once that file is durable.
    ///
    /// - Parameter found: The file whose bytes were compared.
    /// - Throws: `DESTINATION_EXISTS` if the name leads to another file by now.
    func settle(on found: FileStatus, digest: SHA256Digest, size: Int64) async throws {
        let (files, path, scratch) = (files, download.destinationPath, download.tempPath)
        try await context.store.doubtDestination(of: context.lease)
        let mayChangeFolder = try await context.onDisk("sync", .destination) {
            try Self.sync(found, at: path, files: files)
            return try Self.makeNameDurable(path, scratch: scratch, files: files)
        }
        // Without write access to the folder, this client left neither a name nor a file there.
        if mayChangeFolder { try await deleteTempFile() }
        try await complete(digest: digest, size: size)
    }

    /// Syncs the name of a file found in place. It may be this client's own, from a run that
    /// stopped at that sync.
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

    /// Makes the bytes of a file found in place durable.
    ///
    /// - Throws: `DESTINATION_EXISTS` if the name leads to another file by now.
    static func sync(_ found: FileStatus, at path: String, files: any FileSystem) throws {
        let file = try files.open(path, .read)
        guard try file.status().isSameFile(as: found) else { throw anotherFile(at: path) }
        try file.syncData()
    }

    /// Reads a file and compares its bytes with the expected size and digest.
    ///
    /// - Returns: The file that was read; nil if its bytes differ, or if the name leads to another
    ///   file afterwards.
    static func verified(
        _ path: String, digest: SHA256Digest, size: Int64, files: any FileSystem
    ) throws -> FileStatus? {
        guard let status = try files.status(of: path), status.isRegularFile,
            status.byteCount == size
        else { return nil }
        let file = try files.open(path, .read)
        guard try TempFile.digest(of: file, range: ByteRange(start: 0, end: size)) == digest else {
            return nil
        }
        let read = try file.status()
        return read.isSameFile(as: try files.status(of: path)) ? read : nil
    }
}
