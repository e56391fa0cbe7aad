internal import GRDB
package import KedgeModel

extension TransferStore {
    /// Makes the record of a download, or finds the unfinished one of the same file to the same
    /// place; that one takes over what the new call says about replacing and about the hash.
    /// Another unfinished download to that place is returned as well: the caller refuses.
    package func findOrInsert(_ download: DownloadTransfer) async throws -> DownloadTransfer {
        try await transaction("create download") { database in
            let existing = try Row.fetchOne(
                database,
                sql: """
                    \(TransferDirection.download.selection) WHERE destination_path = ?
                        AND state NOT IN ('completed', 'canceled')
                    """,
                arguments: [download.destinationPath])
            if let existing {
                return try Self.adopt(
                    download, into: TransferRow(existing, direction: .download), in: database)
            }
            try Self.insert(download, in: database)
            return download
        }
    }

    /// The download with this id.
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

    /// What the server says about the file, before the first range is asked for (R90).
    ///
    /// - Parameter restarts: True when the file is another version than before: everything that was
    ///   downloaded is forgotten (R103).
    package func setRemote(
        _ remote: RemoteFile, chunkSize: Int64, restarts: Bool, answer: ServerAnswer?,
        of lease: Lease
    ) async throws {
        try await update(lease, operation: "set remote") { change in
            if restarts { Self.forgetProgress(&change) }
            change.set("expected_size", remote.byteCount)
            if change.row.integer("is_hash_pinned") == 0 {
                change.set("expected_hash", remote.sha256?.bytes)
            }
            change.set("etag", remote.validator.text)
            change.set("is_validator_weak", remote.validator.isWeak)
            change.set("chunk_size", chunkSize)
            change.setAnswer(answer)
        }
    }

    /// The file changed on the server; returns how often by now. The next run of the worker asks anew.
    package func recordRemoteChange(_ lease: Lease, answer: ServerAnswer?) async throws -> Int {
        try await update(lease, operation: "record remote change") { change in
            let count = Int(change.row.integer("remote_change_count") ?? 0) + 1
            Self.forgetProgress(&change)
            change.set("remote_change_count", count)
            change.setError(.remoteChanged, "The file changed on the server; starting over.")
            change.setAnswer(answer)
            return count
        }
    }

    /// A temporary file with this name is made next: no byte of it is known. Written before it, so
    /// that after a crash somebody knows what to take away.
    package func prepareTempFile(at path: String, of lease: Lease) async throws {
        try await update(lease, operation: "prepare temp file") { change in
            Self.forgetProgress(&change)
            change.set("temp_path", path)
            change.clear("temp_inode")
        }
    }

    /// The temporary file was made: it is this one.
    package func attachTempFile(inode: UInt64, of lease: Lease) async throws {
        try await update(lease, operation: "attach temp file") { change in
            change.set("temp_inode", Int64(bitPattern: inode))
        }
    }

    /// Chunks, and parts of others, are durable in the temporary file. Call after syncing it, never
    /// before (R92).
    package func confirmChunks(
        _ chunks: [ConfirmedChunk], partials: [Int: SavedHash] = [:], answer: ServerAnswer?,
        of lease: Lease
    ) async throws {
        try await update(lease, operation: "confirm chunks") { change in
            var set = try change.row.chunks("downloaded_chunks")
            for chunk in chunks {
                set.insert(chunk.index)
                try change.countAttempts(chunk.attempts, ofChunk: chunk.index, in: lease.id)
                try Self.deletePartial(ofChunk: chunk.index, in: lease.id, change.database)
            }
            for (index, part) in partials where !set.contains(index) {
                try Self.savePartial(part, ofChunk: index, in: lease.id, change.database)
            }
            if let furthest = chunks.map(\.endOffset).max() {
                change.set("downloaded_chunks", set.serialized)
                change.set(
                    "last_good_byte_offset",
                    max(furthest, change.row.integer("last_good_byte_offset") ?? 0))
            }
            change.clearError()
            change.setAnswer(answer)
        }
    }

    /// Some chunks have wrong bytes after all: they are fetched again.
    package func discardChunks(_ indexes: [Int], of lease: Lease) async throws {
        try await update(lease, operation: "discard chunks") { change in
            var set = try change.row.chunks("downloaded_chunks")
            for index in indexes { set.remove(index) }
            change.set("downloaded_chunks", set.serialized)
            change.clear("file_hash_sha256")
        }
    }

    /// Nothing of what was downloaded can be trusted, or it could not be kept.
    package func discardProgress(of lease: Lease) async throws {
        try await update(lease, operation: "discard progress") { change in
            Self.forgetProgress(&change)
            change.clear("temp_inode")
        }
    }

    /// All bytes are there and have this hash; the rename comes next. Written before it, so that a
    /// crash in between is understood afterwards (R96).
    ///
    /// - Parameter known: What the worker went by.
    /// - Returns: False when somebody asked for something else since; nothing is written then.
    package func beginPromotion(
        fileHash: SHA256Digest, size: Int64, known: DownloadTransfer, of lease: Lease
    ) async throws -> Bool {
        try await update(lease, operation: "begin promotion") { change in
            let now = try DownloadTransfer(change.row)
            guard now.overwrites == known.overwrites, now.expectedHash == known.expectedHash else {
                return false
            }
            change.set("file_hash_sha256", fileHash.bytes)
            change.set("expected_size", size)
            return true
        }
    }

    /// A file that is at the destination already is synced next. Written before it: after a failure a
    /// later sync of that file would succeed without anything being written.
    package func doubtDestination(of lease: Lease) async throws {
        try await update(lease, operation: "doubt destination") { change in
            change.set("is_destination_in_doubt", true)
        }
    }

    /// The verified file is at its destination, durably (R108).
    package func completeDownload(
        fileHash: SHA256Digest, size: Int64, verification: Verification, of lease: Lease
    ) async throws {
        try await update(lease, operation: "complete download") { change in
            try change.apply(.complete)
            change.forgetSecrets()
            change.set("file_hash_sha256", fileHash.bytes)
            change.set("expected_size", size)
            change.set("verification", verification.rawValue)
            if verification == .sha256 { change.set("expected_hash", fileHash.bytes) }
            change.set("last_good_byte_offset", size)
            change.set("control", ControlCommand.none.rawValue)
            change.clearError()
            change.releaseOwner()
        }
    }

    /// The same command again, with other options: the newest ones count.
    private static func adopt(
        _ wanted: DownloadTransfer, into row: TransferRow, in database: Database
    ) throws -> DownloadTransfer {
        let existing = try DownloadTransfer(row)
        guard existing.reference == wanted.reference else { return existing }
        let pinned = existing.isHashPinned ? existing.expectedHash : nil
        guard
            existing.overwrites != wanted.overwrites || pinned != wanted.expectedHash
                || existing.resumesUnverified != wanted.resumesUnverified
        else { return existing }
        var change = RowChange(row, in: database)
        change.set("overwrites", wanted.overwrites)
        change.set("resumes_unverified", wanted.resumesUnverified)
        if pinned != wanted.expectedHash {
            // Without a pinned one the server is asked again.
            change.set("expected_hash", wanted.expectedHash?.bytes)
            change.set("is_hash_pinned", wanted.isHashPinned)
        }
        try change.write(existing.status.id, at: wanted.status.createdAt)
        return try DownloadTransfer(TransferRow.find(existing.status.id, in: database))
    }

    static func forgetProgress(_ change: inout RowChange) {
        change.set("downloaded_chunks", [])
        change.set("last_good_byte_offset", 0)
        change.clear("file_hash_sha256")
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
                    resumes_unverified, chunk_size, state, created_at, updated_at)
                VALUES (:id, :server, :file, :url, :destination, :temp, :overwrites, :hash, :pinned,
                    :unverified, :chunk, :state, :created, :created)
                """,
            arguments: [
                "id": status.id.text, "server": status.serverURL, "file": fileID, "url": url,
                "destination": download.destinationPath, "temp": download.tempPath,
                "overwrites": download.overwrites, "hash": download.expectedHash?.blob,
                "pinned": download.isHashPinned, "unverified": download.resumesUnverified,
                "chunk": download.chunkSize,
                "state": status.state.rawValue,
                "created": status.createdAt.millisecondsSinceEpoch,
            ])
    }
}

/// A chunk whose bytes are on stable storage.
package struct ConfirmedChunk: Sendable {
    package let index: Int
    package let endOffset: Int64
    /// Tries that were not counted yet.
    package let attempts: Int
}
