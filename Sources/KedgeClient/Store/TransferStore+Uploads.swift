internal import GRDB
package import KedgeModel

extension TransferStore {
    /// Creates the record of an upload, or returns the unfinished one of the same file and server,
    /// so that the same command resumes it. Decided in one transaction, also between processes.
    package func findOrInsert(_ upload: UploadTransfer) async throws -> UploadTransfer {
        let now = now()
        let owners = owners
        return try await transaction("create upload") { database in
            let existing = try Row.fetchOne(
                database,
                sql: """
                    SELECT * FROM upload_transfer WHERE server_url = ? AND path = ?
                        AND dialect = ? AND state NOT IN ('completed', 'canceled')
                    """,
                arguments: [
                    upload.status.serverURL, upload.path, upload.uploadProtocol.rawValue,
                ])
            if let existing {
                let row = TransferRow(existing, direction: .upload)
                let isRunning = try row.owner.map { try owners.isAlive($0, at: now) } ?? false
                if let bound = try Self.bind(
                    upload, to: row, isRunning: isRunning, in: database)
                {
                    return bound
                }
                return try Self.adopt(upload, into: row, in: database)
            }
            try Self.insert(upload, in: database)
            return upload
        }
    }

    /// Returns the upload with this id.
    package func upload(_ id: TransferID) async throws -> UploadTransfer {
        try await reading("read upload") { database in
            let row = try TransferRow.find(id, in: database)
            guard row.direction == .upload else {
                throw TransferError(.transferNotFound, operation: "read upload", resource: id.text)
            }
            return try UploadTransfer(row)
        }
    }

    /// Records that a chunk is durable on the server.
    ///
    /// - Parameters:
    ///   - endOffset: End offset of the chunk, in bytes.
    ///   - digest: Digest of the chunk as read: proves later that the file is unchanged.
    ///   - hash: The running whole-file hash so far; nil discards it.
    ///   - attempts: Tries that the record does not include yet.
    package func confirmChunk(
        _ index: Int, endOffset: Int64, digest: SHA256Digest, hash: SavedHash?, attempts: Int,
        answer: ServerAnswer?, of lease: Lease
    ) async throws {
        try await update(lease, operation: "confirm chunk") { change in
            change.insertChunk(index, into: .uploadedChunks)
            change.set(
                .lastGoodByteOffset,
                max(endOffset, change.row.integer(.lastGoodByteOffset) ?? 0))
            change.setHash(hash)
            change.clearError()
            change.setAnswer(answer)
            try change.countAttempts(attempts, ofChunk: index, in: lease.id)
            try change.setDigest(digest, ofChunk: index, in: lease.id)
        }
    }

    /// Records the session that the server created. Its chunk size replaces the requested one.
    package func attachSession(
        _ session: CreateSessionResponse, answer: ServerAnswer?, to lease: Lease
    ) async throws {
        try await update(lease, operation: "attach session") { change in
            change.set(.sessionID, session.sessionId.text)
            change.set(.expiresAt, session.expiresAt.millisecondsSinceEpoch)
            change.set(.chunkSize, session.chunkSize)
            change.set(.maxConcurrentChunks, max(1, session.limits.maxConcurrentChunks))
            change.set(.sessionLink, session.uploadLink.flatMap { ServiceLink.text(of: $0) })
            change.set(.uploadedChunks, [])
            change.setAnswer(answer)
        }
    }

    /// Records the chunks that the server reports. The server's state is authoritative.
    package func reconcile(
        received: ChunkSet, expiresAt: Timestamp, chunkSize: Int64, answer: ServerAnswer?,
        of lease: Lease
    ) async throws {
        try await update(lease, operation: "reconcile") { change in
            change.set(.uploadedChunks, received.serialized)
            change.set(.expiresAt, expiresAt.millisecondsSinceEpoch)
            change.set(.chunkSize, chunkSize)
            change.setAnswer(answer)
        }
    }

    /// Discards a session that is gone or cannot be trusted: the next one starts without chunks.
    ///
    /// - Parameters:
    ///   - adopt: The old session, if the server may still have its chunks.
    ///   - keepsHash: False if the bytes read so far are in doubt, too.
    package func resetForNewSession(
        adopt: SessionID?, idempotencyKey: String, keepsHash: Bool, of lease: Lease
    ) async throws {
        try await update(lease, operation: "reset for new session") { change in
            change.clear(.sessionID, .sessionLink, .expiresAt, .maxConcurrentChunks)
            change.set(.uploadedChunks, [])
            change.set(.lastGoodByteOffset, 0)
            change.set(.adoptSessionID, adopt?.text)
            change.set(.idempotencyKey, idempotencyKey)
            if !keepsHash {
                try change.discardDigests()
                change.setHash(nil)
                change.clear(.fileHash)
            }
        }
    }

    /// Discards the link of the session, because the server refuses it.
    func discardSessionLink(of lease: Lease) async throws {
        try await update(lease, operation: "discard session link") { change in
            change.clear(.sessionLink)
        }
    }

    /// Records the digest of the whole file.
    ///
    /// - Parameter readBackByteCount: Number of bytes that were read again for it.
    package func setFileHash(
        _ digest: SHA256Digest, readBackByteCount: Int64, of lease: Lease
    ) async throws {
        try await update(lease, operation: "set file hash") { change in
            change.set(.fileHash, digest.bytes)
            change.set(.readBackBytes, readBackByteCount)
        }
    }

    /// Completes the upload: the server has the file with the computed hash.
    package func completeUpload(
        _ file: FinalizeResponse, answer: ServerAnswer?, of lease: Lease
    ) async throws {
        try await update(lease, operation: "complete upload") { change in
            try change.apply(.complete)
            change.forgetSecrets()
            change.set(.remoteFileID, file.remoteFileId.text)
            change.set(.fileHash, file.fileHashSha256.bytes)
            change.set(.verification, Verification.sha256.rawValue)
            change.set(.lastGoodByteOffset, file.size)
            change.setCommand(nil)
            change.clearError()
            change.setAnswer(answer)
            change.releaseOwner()
        }
    }

    /// Cancels the transfer of a changed file with `FILE_CHANGED` and inserts the one for the new
    /// version, in one transaction.
    package func replaceChangedUpload(
        _ lease: Lease, with newer: UploadTransfer
    ) async throws {
        try await update(lease, operation: "replace changed upload") { change in
            try change.apply(.cancel)
            change.forgetSecrets()
            change.setError(
                .fileChanged,
                "The file changed; the new version is uploaded as \(newer.status.id.text).")
            change.set(.replacedBy, newer.status.id.text)
            change.setCommand(nil)
            change.releaseOwner()
            // Written now, because the new record takes this one's place in the unique index.
            try change.write(lease.id, at: newer.status.createdAt)
            try Self.insert(newer, in: change.database)
        }
    }

    /// Applies the options of a repeated command to an existing upload. A session freezes them,
    /// except that all bytes can still be sent.
    private static func adopt(
        _ wanted: UploadTransfer, into row: TransferRow, in database: Database
    ) throws -> UploadTransfer {
        var row = row
        if let link = wanted.link {
            row = try adopt(link, into: row, at: wanted.status.createdAt, in: database)
        }
        let existing = try UploadTransfer(row)
        guard existing.sessionID == nil, existing.adoptSessionID == nil,
            existing.uploadURL == nil
        else {
            guard wanted.sendsAllBytes, !existing.sendsAllBytes else { return existing }
            var change = RowChange(row, in: database)
            change.set(.sendsAllBytes, true)
            try change.write(existing.status.id, at: wanted.status.createdAt)
            return try UploadTransfer(TransferRow.find(existing.status.id, in: database))
        }
        // The new size fits the file as it is now. An upload whose file has changed is replaced
        // when it runs, and its successor gets the other options.
        let isSameFile = existing.identity.comparison(with: wanted.identity) != .changed
        let chunkSize = isSameFile ? wanted.chunkSize : existing.chunkSize
        guard
            existing.mimeType != wanted.mimeType || existing.chunkSize != chunkSize
                || existing.metadata != wanted.metadata
                || existing.sendsAllBytes != wanted.sendsAllBytes
                || existing.keepsModificationTime != wanted.keepsModificationTime
        else { return existing }
        var change = RowChange(row, in: database)
        change.set(.mimeType, wanted.mimeType)
        change.set(.chunkSize, chunkSize)
        change.set(.metadata, UploadMetadata.encode(wanted.metadata))
        change.set(.sendsAllBytes, wanted.sendsAllBytes)
        change.set(.keepsModificationTime, wanted.keepsModificationTime)
        try change.write(existing.status.id, at: wanted.status.createdAt)
        return try UploadTransfer(TransferRow.find(existing.status.id, in: database))
    }

    private static func insert(_ upload: UploadTransfer, in database: Database) throws {
        let status = upload.status
        try database.execute(
            sql: """
                INSERT INTO upload_transfer (transfer_id, server_url, path, file_name, file_size,
                    modified_nanoseconds, changed_nanoseconds, inode, mime_type, chunk_size,
                    idempotency_key, replaces, given_session_id, dialect, state, created_at,
                    updated_at, metadata, sends_all_bytes, keeps_modification_time, link,
                    session_link)
                VALUES (:id, :server, :path, :name, :size, :modified, :changed, :inode, :type,
                    :chunk, :key, :replaces, :given, :dialect, :state, :created, :created,
                    :metadata, :all, :keeps_time, :link, :session_link)
                """,
            arguments: [
                "id": status.id.text, "server": status.serverURL, "path": upload.path,
                "name": upload.fileName, "size": upload.identity.byteCount,
                "modified": upload.identity.modifiedNanoseconds,
                "changed": upload.identity.changedNanoseconds,
                "inode": Int64(bitPattern: upload.identity.inode), "type": upload.mimeType,
                "chunk": upload.chunkSize, "key": upload.idempotencyKey,
                "replaces": upload.replaces?.text, "given": upload.givenSessionID?.text,
                "dialect": upload.uploadProtocol.rawValue,
                "state": status.state.rawValue,
                "created": status.createdAt.millisecondsSinceEpoch,
                "metadata": UploadMetadata.encode(upload.metadata),
                "all": upload.sendsAllBytes,
                "keeps_time": upload.keepsModificationTime, "link": upload.link,
                "session_link": upload.sessionLink,
            ])
    }
}
