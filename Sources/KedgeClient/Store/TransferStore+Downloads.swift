internal import GRDB
package import KedgeModel

extension TransferStore {
    /// Creates the record of a download, or returns the unfinished one to the same destination. One
    /// of the same file adopts the options of the new call. One of another file is returned, too:
    /// the caller refuses it.
    package func findOrInsert(_ download: DownloadTransfer) async throws -> DownloadTransfer {
        let now = now()
        let owners = owners
        return try await transaction("create download") { database in
            let existing = try Row.fetchOne(
                database,
                sql: """
                    \(TransferDirection.download.selection) WHERE destination_path = ?
                        AND state NOT IN ('completed', 'canceled')
                    """,
                arguments: [download.destinationPath])
            if let existing {
                let row = TransferRow(existing, direction: .download)
                let isRunning = try row.owner.map { try owners.isAlive($0, at: now) } ?? false
                return try Self.adopt(download, into: row, isRunning: isRunning, in: database)
            }
            try Self.insert(download, in: database)
            return download
        }
    }

    /// Returns the download with this id.
    package func download(_ id: TransferID) async throws -> DownloadTransfer {
        try await reading("read download") { database in
            let row = try TransferRow.find(id, in: database)
            guard row.direction == .download else {
                throw TransferError(
                    .transferNotFound, operation: "read download", resource: id.text)
            }
            return try DownloadTransfer(row)
        }
    }

    /// Records the server's metadata of the file, before the first range request.
    ///
    /// - Parameter restarts: Whether to discard all progress, for example of another version.
    package func setRemote(
        _ remote: RemoteFile, chunkSize: Int64, restarts: Bool, answer: ServerAnswer?,
        of lease: Lease
    ) async throws {
        try await update(lease, operation: "set remote") { change in
            if restarts { Self.clearProgress(&change) }
            change.set(.expectedSize, remote.byteCount)
            if change.row.integer(.isHashPinned) == 0 {
                change.set(.expectedHash, remote.sha256?.bytes)
            }
            change.set(.etag, remote.validator.text)
            change.set(.isValidatorWeak, remote.validator.isWeak)
            change.set(.chunkSize, chunkSize)
            change.setAnswer(answer)
        }
    }

    /// Discards the progress, because the file changed on the server; returns how often so far.
    package func recordRemoteChange(_ lease: Lease, answer: ServerAnswer?) async throws -> Int {
        try await update(lease, operation: "record remote change") { change in
            let count = Int(change.row.integer(.remoteChangeCount) ?? 0) + 1
            Self.clearProgress(&change)
            change.set(.remoteChangeCount, count)
            change.setError(.remoteChanged, "The file changed on the server; starting over.")
            change.setAnswer(answer)
            return count
        }
    }

    /// Discards the progress and records the name of the next temporary file. Written before the
    /// file exists, so that the file can be removed after a crash.
    package func prepareTempFile(at path: String, of lease: Lease) async throws {
        try await update(lease, operation: "prepare temp file") { change in
            Self.clearProgress(&change)
            change.set(.tempPath, path)
            change.clear(.tempInode)
        }
    }

    /// Records the inode of the new temporary file.
    package func attachTempFile(inode: UInt64, of lease: Lease) async throws {
        try await update(lease, operation: "attach temp file") { change in
            change.set(.tempInode, Int64(bitPattern: inode))
        }
    }

    /// Records chunks and partials as durable. Call only after syncing the temporary file.
    package func confirmChunks(
        _ chunks: [ConfirmedChunk], partials: [Int: SavedHash] = [:], answer: ServerAnswer?,
        of lease: Lease
    ) async throws {
        try await update(lease, operation: "confirm chunks") { change in
            var set = try change.row.chunks(.downloadedChunks)
            for chunk in chunks {
                set.insert(chunk.index)
                try change.countAttempts(chunk.attempts, ofChunk: chunk.index, in: lease.id)
                try Self.deletePartial(ofChunk: chunk.index, in: lease.id, change.database)
            }
            for (index, part) in partials where !set.contains(index) {
                try Self.savePartial(part, ofChunk: index, in: lease.id, change.database)
            }
            if let furthest = chunks.map(\.endOffset).max() {
                change.set(.downloadedChunks, set.serialized)
                change.set(
                    .lastGoodByteOffset,
                    max(furthest, change.row.integer(.lastGoodByteOffset) ?? 0))
            }
            change.clearError()
            change.setAnswer(answer)
        }
    }

    /// Invalidates chunks with wrong bytes, so that they are fetched again.
    package func discardChunks(_ indexes: [Int], of lease: Lease) async throws {
        try await update(lease, operation: "discard chunks") { change in
            var set = try change.row.chunks(.downloadedChunks)
            for index in indexes { set.remove(index) }
            change.set(.downloadedChunks, set.serialized)
            change.clear(.fileHash)
        }
    }

    /// Invalidates all downloaded bytes, because they cannot be trusted or kept.
    package func discardProgress(of lease: Lease) async throws {
        try await update(lease, operation: "discard progress") { change in
            Self.clearProgress(&change)
            change.clear(.tempInode)
        }
    }

    /// Records the verified hash before the rename, so that a later run can recover from a crash.
    ///
    /// - Parameters:
    ///   - readBackByteCount: Number of bytes that were read again for the hash.
    ///   - known: The record that the worker used.
    /// - Returns: False if the options have changed since; then the record stays unchanged.
    package func beginPromotion(
        fileHash: SHA256Digest, size: Int64, readBackByteCount: Int64, known: DownloadTransfer,
        of lease: Lease
    ) async throws -> Bool {
        try await update(lease, operation: "begin promotion") { change in
            let now = try DownloadTransfer(change.row)
            guard now.overwrites == known.overwrites, now.expectedHash == known.expectedHash,
                now.keepsModificationTime == known.keepsModificationTime
            else { return false }
            change.set(.fileHash, fileHash.bytes)
            change.set(.expectedSize, size)
            change.set(.readBackBytes, readBackByteCount)
            return true
        }
    }

    /// Marks an existing destination file as in doubt before it is synced. After a failed sync, a
    /// later one would succeed without writing anything.
    package func doubtDestination(of lease: Lease) async throws {
        try await update(lease, operation: "doubt destination") { change in
            change.set(.isDestinationInDoubt, true)
        }
    }

    /// Completes the download: the verified file is durable at its destination.
    package func completeDownload(
        fileHash: SHA256Digest, size: Int64, verification: Verification, of lease: Lease
    ) async throws {
        try await update(lease, operation: "complete download") { change in
            try change.apply(.complete)
            change.forgetSecrets()
            change.set(.fileHash, fileHash.bytes)
            change.set(.expectedSize, size)
            change.set(.verification, verification.rawValue)
            if verification == .sha256 { change.set(.expectedHash, fileHash.bytes) }
            change.set(.lastGoodByteOffset, size)
            change.setCommand(nil)
            change.clearError()
            change.releaseOwner()
        }
    }

    /// Applies the options of a repeated command to an existing download.
    private static func adopt(
        _ wanted: DownloadTransfer, into row: TransferRow, isRunning: Bool, in database: Database
    ) throws -> DownloadTransfer {
        let existing = try DownloadTransfer(row)
        let isRenewed = !isRunning && existing.reference.isRenewed(by: wanted.reference)
        guard isRenewed || existing.reference == wanted.reference else { return existing }
        let pinned = existing.isHashPinned ? existing.expectedHash : nil
        // Ids are random: the same one at another address is the same file, and its version is
        // compared before a byte is added.
        let hasMoved =
            !isRunning && !wanted.reference.isURL
            && existing.status.serverURL != wanted.status.serverURL
        guard
            hasMoved || isRenewed || existing.overwrites != wanted.overwrites
                || pinned != wanted.expectedHash
                || existing.resumesUnverified != wanted.resumesUnverified
                || existing.keepsModificationTime != wanted.keepsModificationTime
        else { return existing }
        var change = RowChange(row, in: database)
        if hasMoved { change.set(.serverURL, wanted.status.serverURL) }
        if isRenewed { change.set(.remoteURL, wanted.reference.urlText) }
        change.set(.overwrites, wanted.overwrites)
        change.set(.resumesUnverified, wanted.resumesUnverified)
        change.set(.keepsModificationTime, wanted.keepsModificationTime)
        if pinned != wanted.expectedHash {
            // Without a pinned hash, the server is asked again.
            change.set(.expectedHash, wanted.expectedHash?.bytes)
            change.set(.isHashPinned, wanted.isHashPinned)
        }
        try change.write(existing.status.id, at: wanted.status.createdAt)
        return try DownloadTransfer(TransferRow.find(existing.status.id, in: database))
    }

    static func clearProgress(_ change: inout RowChange) {
        change.set(.downloadedChunks, [])
        change.set(.lastGoodByteOffset, 0)
        change.clear(.fileHash)
    }

    private static func insert(_ download: DownloadTransfer, in database: Database) throws {
        let status = download.status
        var fileID: String?
        var url: String?
        switch download.reference {
        case .file(let id): fileID = id.text
        case .url(let text): url = text
        }
        try database.execute(
            sql: """
                INSERT INTO download_transfer (transfer_id, server_url, remote_file_id, remote_url,
                    destination_path, temp_path, overwrites, expected_hash, is_hash_pinned,
                    resumes_unverified, keeps_modification_time, chunk_size, state, created_at,
                    updated_at)
                VALUES (:id, :server, :file, :url, :destination, :temp, :overwrites, :hash, :pinned,
                    :unverified, :keeps_time, :chunk, :state, :created, :created)
                """,
            arguments: [
                "id": status.id.text, "server": status.serverURL, "file": fileID, "url": url,
                "destination": download.destinationPath, "temp": download.tempPath,
                "overwrites": download.overwrites, "hash": download.expectedHash?.blob,
                "pinned": download.isHashPinned, "unverified": download.resumesUnverified,
                "keeps_time": download.keepsModificationTime, "chunk": download.chunkSize,
                "state": status.state.rawValue,
                "created": status.createdAt.millisecondsSinceEpoch,
            ])
    }
}

/// A chunk whose bytes are on stable storage.
package struct ConfirmedChunk: Sendable {
    package let index: Int
    package let endOffset: Int64
    /// Tries that the record does not include yet.
    package let attempts: Int
}
