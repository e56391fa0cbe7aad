internal import KedgeFiles

extension TransferClient {
    /// Directory of the transfer records.
    public var recordsDirectory: String { TempFile.directory(of: configuration.storePath) }

    /// Returns the bytes available to this user at a path. Blocks for one system call.
    ///
    /// - Throws: ``TransferError`` if the file system cannot be examined.
    public func availableBytes(at path: String) throws -> Int64 {
        do {
            return try environment.files.availableBytes(at: path)
        } catch {
            throw TransferError(error, operation: "look at", role: .fileSystem)
        }
    }
}
