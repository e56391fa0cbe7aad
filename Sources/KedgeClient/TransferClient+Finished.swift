internal import KedgeModel

extension TransferClient {
    /// The finished upload of this very file, when the server still has it: uploading it again would
    /// only make a second copy (R1).
    ///
    /// The file counts as the same while its size, times of change and inode are those of the record, or
    /// when only its ctime differs and it has the SHA-256 of the record; and while the name and type that the options ask for are those it was stored with. An unfinished
    /// transfer of the path goes first: then the answer is nil, as when nothing was found. In other
    /// dialects than the native one the server has it when it says that the upload is complete; many
    /// forget uploads when these are.
    ///
    /// - Throws: `FILE_MISSING` when there is no such file; the code of a server that cannot be asked, or
    ///   does not say. ``TransferError/isRetryable`` tells whether asking again later may help.
    public func finishedUpload(
        path: String, options: UploadOptions = UploadOptions()
    ) async throws -> TransferSnapshot? {
        let path = LocalPath.absolute(path)
        let identity = try await UploadSource.identity(
            of: path, files: environment.files, pool: pool)
        let server = server(for: options.dialect)
        guard
            let upload = try await store.newestUpload(
                of: path, to: server, dialect: options.dialect),
            upload.status.state == .completed,
            upload.identity.comparison(with: identity) != .changed,
            options.fileName.map({ FileName.sanitized($0) == upload.fileName }) ?? true,
            options.mimeType.map({ $0 == upload.mimeType }) ?? true,
            try await isAtServer(upload), try await isContent(of: upload, inFile: identity)
        else { return nil }
        return try await transfer(upload.status.id)
    }

    /// Reads the file when its time of change is another one than the record has.
    private func isContent(
        of upload: UploadTransfer, inFile identity: SourceIdentity
    ) async throws -> Bool {
        guard upload.identity != identity else { return true }
        let (file, before) = try await UploadSource.openFile(
            upload.path, files: environment.files, pool: pool)
        let hash = PrefixHash(file: file, saved: nil, environment: environment)
        defer { hash.stop() }
        do {
            let digest = try await hash.digest(ofFile: identity.byteCount)
            let after = try await UploadSource.identity(
                of: upload.path, files: environment.files, pool: pool)
            guard digest == upload.fileHash, before == identity, after == identity else {
                return false
            }
        } catch is SourceChanged {
            return false
        }
        try await store.acceptFinishedSource(identity, of: upload.status.id)
        return true
    }

    private func isAtServer(_ upload: UploadTransfer) async throws -> Bool {
        do {
            if upload.dialect == .native {
                guard let file = upload.remoteFileID else { return false }
                _ = try await remote.fileMeta(file)
                return true
            }
            guard let address = upload.address else { return false }
            let door = api(of: upload.status.serverURL).door(upload.dialect)
            let state = try await door.state(of: address)
            return state.isComplete && state.offset == upload.identity.byteCount
        } catch let error as TransferError where Self.isGone(error.code) {
            return false
        } catch let failure as RequestFailure {
            if failure.isCanceled { throw CancellationError() }
            // What does not look like this upload any more is none. Other refusals may pass: not to wait
            // for the answer could make a second copy.
            if let answer = failure.answer,
                answer.status == 303 || Self.endsUpload(failure.code)
            {
                return false
            }
            throw TransferError(
                failure.code, operation: failure.operation, explanation: failure.message,
                // The upload was there: waiting does not bring it back from where a redirect points to.
                cause: failure.code == .redirected ? nil : failure)
        }
    }

    private static func isGone(_ code: ErrorCode) -> Bool {
        // A damaged copy is healed by the same bytes.
        code == .fileNotFound || code == .fileGone || code == .fileDamaged
    }

    private static func endsUpload(_ code: ErrorCode) -> Bool {
        [.sessionNotFound, .sessionExpired, .methodNotAllowed, .protocolViolation].contains(code)
    }
}
