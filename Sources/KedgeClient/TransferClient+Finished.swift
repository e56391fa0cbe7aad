public import KedgeModel

extension TransferClient {
    /// Returns the finished upload of this file if the server still has it. Uploading it again
    /// would only make a second copy.
    ///
    /// The file is the same if its size, times and inode match the record, or if only its ctime
    /// differs and its SHA-256 matches. The name, type and metadata in the options must match the
    /// stored ones. Only the newest transfer of the path counts; while it is unfinished, the result
    /// is nil. In protocols other than ``UploadProtocol/native``, the server must report the upload
    /// as complete; many servers forget complete uploads.
    ///
    /// - Throws: `FILE_MISSING` if there is no such file; the server's code if its answer is
    ///   missing or unclear. ``TransferError/isRetryable`` states whether a later attempt may help.
    public func finishedUpload(
        path: String, options: UploadOptions = UploadOptions()
    ) async throws -> TransferSnapshot? {
        let path = LocalPath.absolute(path)
        let identity = try await newIdentity(of: path)
        let server = server(for: options.uploadProtocol)
        guard
            let upload = try await store.newestUpload(
                of: path, to: server, uploadProtocol: options.uploadProtocol),
            upload.status.state == .completed,
            upload.identity.comparison(with: identity) != .changed,
            options.fileName.map({ FileName.sanitized($0) == upload.fileName }) ?? true,
            options.mimeType.map({ $0 == upload.mimeType }) ?? true,
            options.matchMetadata(of: upload),
            try await isAtServer(upload), try await isContent(of: upload, inFile: identity)
        else { return nil }
        return try await transfer(upload.status.id)
    }

    /// Computes the SHA-256 of a local file.
    ///
    /// - Throws: `FILE_MISSING` if there is no such file; `FILE_CHANGED` if it changes meanwhile.
    public func digest(ofFileAt path: String) async throws -> SHA256Digest {
        let path = LocalPath.absolute(path)
        // Errors do not name an upload: the file may be compared with one on the server.
        let (file, before) = try await UploadSource.openFile(
            path, files: environment.files, pool: pool, role: .inspectedFile)
        let hash = FileHasher(file: file, saved: nil, environment: environment)
        defer { hash.stop() }
        let hashed = try await hash.digest(ofSize: before.byteCount, role: .inspectedFile)
        let after = try await UploadSource.identity(
            of: path, files: environment.files, pool: pool, role: .inspectedFile)
        guard let digest = hashed, before == after else {
            throw TransferError(
                .fileChanged, operation: "hash file", resource: path,
                explanation: "The file changed while it was read.")
        }
        return digest
    }

    /// Compares the file's SHA-256 with the record if only the ctime differs.
    private func isContent(
        of upload: UploadTransfer, inFile identity: SourceIdentity
    ) async throws -> Bool {
        guard upload.identity != identity else { return true }
        let (file, before) = try await UploadSource.openFile(
            upload.path, files: environment.files, pool: pool)
        let hash = FileHasher(file: file, saved: nil, environment: environment)
        defer { hash.stop() }
        do {
            let digest = try await hash.digest(ofFile: identity.byteCount)
            let after = try await UploadSource.identity(
                of: upload.path, files: environment.files, pool: pool)
            guard digest == upload.fileHash, before == identity, after == identity else {
                return false
            }
        } catch RunInterruption.sourceChanged {
            return false
        }
        try await store.acceptFinishedSource(identity, of: upload.status.id)
        return true
    }

    private func isAtServer(_ upload: UploadTransfer) async throws -> Bool {
        do {
            if upload.uploadProtocol == .native {
                guard let file = upload.remoteFileID else { return false }
                _ = try await remote.fileMeta(file)
                return true
            }
            guard let address = upload.address else { return false }
            let client = api(of: upload.status.serverURL).client(upload.uploadProtocol)
            let state = try await client.state(of: address)
            return state.isComplete && state.offset == upload.identity.byteCount
        } catch let error as TransferError where Self.isGone(error.code) {
            return false
        } catch let failure as RequestFailure {
            if failure.isCanceled { throw CancellationError() }
            // These answers mean that the upload is gone. Other refusals may be temporary, and
            // treating them as "gone" could make a second copy.
            if let answer = failure.answer,
                answer.status == 303 || Self.endsUpload(failure.code)
            {
                return false
            }
            throw TransferError(
                failure.code, operation: failure.operation, explanation: failure.message,
                // A redirected upload has moved for good: retrying does not help.
                cause: failure.code == .redirected ? nil : failure)
        }
    }

    private static func isGone(_ code: ErrorCode) -> Bool {
        // Uploading the same bytes repairs a damaged copy.
        code == .fileNotFound || code == .fileGone || code == .fileDamaged
    }

    private static func endsUpload(_ code: ErrorCode) -> Bool {
        [.sessionNotFound, .sessionExpired, .methodNotAllowed, .protocolViolation].contains(code)
    }
}
