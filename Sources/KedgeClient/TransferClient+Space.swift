internal import KedgeFiles

extension TransferClient {
    /// Directory of the transfer records.
    public var recordsDirectory: String { TempFile.directory(of: configuration.storePath) }

    /// Bytes that this user may still write at a path. Blocks for one call of the system.
    ///
    /// - Throws: ``TransferError`` when the path cannot be looked at.
    public func availableBytes(at path: String) throws -> Int64 {
        do {
            return try environment.files.availableBytes(at: path)
        } catch {
            throw TransferError(error, operation: "look at", role: "file system")
        }
    }
}
