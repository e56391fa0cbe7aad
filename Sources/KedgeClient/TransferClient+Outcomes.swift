internal import KedgeFiles
internal import KedgeModel
internal import Logging

extension TransferClient {
    /// Carries out the command of another process after the run has stopped.
    func carryOut(_ command: TransferCommand, _ lease: Lease) async throws -> RunStep {
        switch command {
        case .resume:
            // Never left for an owner: it only withdraws the command before.
            return .again
        case .pause:
            try await store.pause(lease, reason: .user)
            return .ended
        case .cancel:
            let record = try await store.record(lease.id)
            try await store.cancel(lease)
            await discardLeftovers(of: record)
            return .ended
        case .retry:
            try await store.acknowledgeCommand(lease)
            return .again
        case .restart:
            let record = try await store.record(lease.id)
            try await store.restart(lease)
            await discardLeftovers(of: record)
            return .again
        }
    }

    /// Marks the transfer as failed and records the reason.
    func fail(_ lease: Lease, with error: any Error) async throws {
        configuration.logger.error(
            "transfer failed",
            metadata: logFields(of: error).merging(["transfer": "\(lease.id)"]) { $1 })
        var facts = FailureFacts(error)
        let record = try await store.record(lease.id)
        // Once the hash is recorded, the file may already have its final name. Only the record then
        // distinguishes it from a foreign file, so it is kept.
        if case .download(let download) = record, download.fileHash == nil {
            let isGivenUp = try await givesBackSpace(of: download, after: facts.code)
            // For an arbitrary URL, a 404 may come from a gateway: no reason to discard gigabytes.
            let isGone =
                [.fileNotFound, .fileGone].contains(facts.code) && !download.reference.isURL
            if isGone, record.confirmedByteCount > 0 {
                facts.message = "The file is no longer on the server; received bytes were removed."
            }
            // Without a confirmed byte there is nothing to resume.
            if isGivenUp || isGone || record.confirmedByteCount == 0 {
                try await store.discardProgress(of: lease)
                await discardLeftovers(of: record)
            }
        }
        try await store.fail(
            lease, code: facts.code, message: facts.message, answer: facts.answer,
            attempt: facts.attempt)
    }

    /// Pauses the transfer, with all its progress, because the server accepts no request without
    /// another token.
    func pauseForSignIn(_ lease: Lease, after facts: FailureFacts) async throws {
        configuration.logger.notice(
            "transfer waits for a token", metadata: ["transfer": "\(lease.id)"])
        try await store.pauseForSignIn(
            lease, message: facts.message, answer: facts.answer, attempt: facts.attempt)
    }

    /// Whether to free the temporary file's space on a full disk.
    private func givesBackSpace(
        of download: DownloadTransfer, after code: ErrorCode
    ) async throws -> Bool {
        guard code == .diskFull else { return false }
        guard configuration.keepsPartialDownloadsOnFullDisk else { return true }
        let (files, path) = (environment.files, TempFile.directory(of: download.tempPath))
        // If the free space is unknown, the received bytes are kept.
        let available = try? await pool.run { try files.availableBytes(at: path) }
        return available.map { $0 < configuration.criticalFreeByteCount } ?? false
    }

    /// Replaces an upload whose file has changed with a new transfer, and removes the old session.
    func replaceChangedUpload(_ lease: Lease) async throws -> RunStep {
        let old = try await store.upload(lease.id)
        guard old.givenSessionID == nil else {
            // The new version does not belong to the session that the user named.
            try await fail(lease, with: RunInterruption.sourceChanged(nil))
            return .ended
        }
        let identity: SourceIdentity
        do {
            identity = try await settledIdentity(of: old.path)
        } catch {
            try await fail(lease, with: error)
            return .ended
        }
        var newer = UploadTransfer(
            status: makeStatus(server: old.status.serverURL), path: old.path,
            fileName: old.fileName, identity: identity,
            mimeType: old.mimeType,
            chunkSize: ChunkLayout.chunkSize(
                preferred: old.chunkSize, forFileOf: identity.byteCount),
            idempotencyKey: makeID().text, uploadProtocol: old.uploadProtocol)
        newer.metadata = old.metadata
        newer.sendsAllBytes = old.sendsAllBytes
        newer.keepsModificationTime = old.keepsModificationTime
        newer.link = old.link
        newer.replaces = old.status.id
        try await store.replaceChangedUpload(lease, with: newer)
        configuration.logger.notice(
            "source changed",
            metadata: ["transfer": "\(lease.id)", "replacedBy": "\(newer.status.id)"])
        await discardLeftovers(of: .upload(old))
        return .replaced(newer.status.id)
    }

    /// Interval at which a changing file is observed, and the limit of these looks.
    private static let settlingInterval = Duration.milliseconds(100)
    private static let maxSettlingCount = 20

    /// Returns the identity of a changed file once it stays the same for a moment, or after two
    /// seconds.
    ///
    /// A truncation sets the size first and the modification time also last, after it has freed the
    /// blocks (ext4, tmpfs). An identity from in between would be that of another change.
    private func settledIdentity(of path: String) async throws -> SourceIdentity {
        let files = environment.files
        func look() async throws -> (identity: SourceIdentity, allocatedByteCount: Int64) {
            let (file, identity) = try await UploadSource.openFile(path, files: files, pool: pool)
            do {
                return (identity, try await pool.run { try file.status().allocatedByteCount })
            } catch {
                throw TransferError.reading(error, operation: "open", role: .source)
            }
        }
        var last = try await look()
        for _ in 0..<Self.maxSettlingCount {
            do {
                try await environment.pause(Self.settlingInterval)
            } catch {
                // The run was canceled: its end is recorded first, as far as the file is known.
                return last.identity
            }
            let now = try await look()
            if now == last { break }
            last = now
        }
        return last.identity
    }

    /// Removes the session or temporary file of an abandoned transfer. Best effort: a session
    /// expires by itself, and a leftover temporary file carries the transfer's id.
    func discardLeftovers(of record: TransferRecord) async {
        do {
            switch record {
            case .upload(let upload):
                if let address = upload.address {
                    return try await remove(address, of: upload)
                }
                guard let session = upload.sessionID, upload.remoteFileID == nil else { return }
                let own = api(for: record)
                let api = upload.sessionLink.map { own.authorized(byLink: $0) } ?? own
                try await api.deleteSession(session)
            case .download(let download):
                let files = environment.files
                try await pool.run { _ = try files.remove(download.tempPath) }
            }
        } catch {
            configuration.logger.info(
                "cleanup failed",
                metadata: logFields(of: error).merging(["transfer": "\(record.status.id)"]) { $1 })
        }
    }

    /// Removes an upload, unless the server reports that it does not support removal.
    private func remove(_ address: UploadAddress, of upload: UploadTransfer) async throws {
        let client = api(for: .upload(upload)).client(upload.uploadProtocol)
        if try await client.discover().offersRemoval { try await client.remove(address) }
    }
}

/// Result of one round of a run.
enum RunStep {
    case ended
    case again
    case held
    case replaced(TransferID)
}
