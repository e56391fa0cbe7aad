public import KedgeContainers
internal import KedgeFiles
internal import KedgeModel

extension TransferClient {
    /// Checks whether a local file in a well-known format, such as JPEG or MP4, is structurally
    /// complete.
    ///
    /// The check reads little of the file and changes nothing. A hash proves that a file arrived
    /// unchanged; this check can show that it was already broken before.
    ///
    /// - Throws: `FILE_MISSING` if there is no such file; `USAGE` if it is not a regular file.
    public func checkContainer(ofFileAt path: String) async throws -> ContainerCheckResult {
        let (path, files) = (LocalPath.absolute(path), environment.files)
        let (file, identity) = try await UploadSource.openFile(path, files: files, pool: pool)
        return try await pool.run {
            do throws(FileError) {
                return try ContainerCheck<FileError>(byteCount: identity.byteCount) {
                    (offset, count) throws(FileError) in
                    try file.bytes(at: offset, count: count)
                }.verdict()
            } catch {
                throw TransferError(error, operation: "check container", role: .inspectedFile)
            }
        }
    }
}

extension OpenFile {
    /// Reads up to `count` bytes; fewer only at the end of the file.
    fileprivate func bytes(at offset: Int64, count: Int) throws(FileError) -> [UInt8] {
        var failure: FileError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filledCount in
            do throws(FileError) {
                filledCount = try read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }
}
