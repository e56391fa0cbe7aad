internal import KedgeModel

extension TransferClient {
    /// The finished upload of this very file, when the server still has it: uploading it again would
    /// only make a second copy (R1).
    ///
    /// The file counts as the same while its size, time of change and inode are those of the record,
    /// and the name and type that the options ask for are those it was stored with. An unfinished
    /// transfer of the path goes first: then the answer is nil, as when nothing was found.
    ///
    /// - Throws: `FILE_MISSING` when there is no such file; the code of a server that cannot be asked.
    public func finishedUpload(
        path: String, options: UploadOptions = UploadOptions()
    ) async throws -> TransferSnapshot? {
        let path = LocalPath.absolute(path)
        let identity = try await UploadSource.identity(
            of: path, files: environment.files, pool: pool)
        guard let upload = try await store.newestUpload(of: path, to: serverURL),
            upload.status.state == .completed, upload.identity == identity,
            options.fileName.map({ FileName.sanitized($0) == upload.fileName }) ?? true,
            options.mimeType.map({ $0 == upload.mimeType }) ?? true,
            let file = upload.remoteFileID
        else { return nil }
        do {
            _ = try await remote.fileMeta(file)
        } catch let error as TransferError where Self.isGone(error.code) {
            return nil
        }
        return try await transfer(upload.status.id)
    }

    private static func isGone(_ code: ErrorCode) -> Bool {
        code == .fileNotFound || code == .fileGone
    }
}
