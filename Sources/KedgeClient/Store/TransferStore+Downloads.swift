internal import GRDB
package import KedgeModel

extension TransferStore {
    /// Makes the record of a download, or finds the unfinished one of the same file to the same
    /// place. Another unfinished download to that place is returned as well: the caller refuses.
    package func findOrInsert(_ download: DownloadTransfer) async throws -> DownloadTransfer {
        try await transaction("create download") { database in
            let existing = try Row.fetchOne(
                database,
                sql: """
                    SELECT * FROM download_transfer WHERE destination_path = ?
                        AND state NOT IN ('completed', 'canceled')
                    """,
                arguments: [download.destinationPath])
            if let existing {
                return try DownloadTransfer(TransferRow(existing, direction: .download))
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
            change.set("etag", remote.strongETag)
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

    /// The temporary file was made anew: no byte of it is known.
    package func attachTempFile(inode: UInt64, of lease: Lease) async throws {
        try await update(lease, operation: "attach temp file") { change in
            Self.forgetProgress(&change)
            change.set("temp_inode", Int64(bitPattern: inode))
        }
    }

    /// Chunks are durable in the temporary file. Call after syncing it, never before (R92).
    package func confirmChunks(
        _ chunks: [ConfirmedChunk], hash: SavedHash, answer: ServerAnswer?, of lease: Lease
    ) async throws {
        try await update(lease, operation: "confirm chunks") { change in
            var set = try change.row.chunks("downloaded_chunks")
            for chunk in chunks {
                set.insert(chunk.index)
                try change.countAttempts(chunk.attempts, ofChunk: chunk.index, in: lease.id)
            }
            let furthest = chunks.map(\.endOffset).max() ?? 0
            change.set("downloaded_chunks", set.serialized)
            change.set(
                "last_good_byte_offset",
                max(furthest, change.row.integer("last_good_byte_offset") ?? 0))
            change.setHash(hash)
            change.clearError()
            change.setAnswer(answer)
        }
    }

    /// Some chunks have wrong bytes after all: they are fetched again, and the hash starts anew.
    package func discardChunks(_ indexes: [Int], of lease: Lease) async throws {
        try await update(lease, operation: "discard chunks") { change in
            var set = try change.row.chunks("downloaded_chunks")
            for index in indexes { set.remove(index) }
            change.set("downloaded_chunks", set.serialized)
            change.setHash(nil)
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
    package func beginPromotion(
        fileHash: SHA256Digest, size: Int64, of lease: Lease
    ) async throws {
        try await update(lease, operation: "begin promotion") { change in
            change.set("file_hash_sha256", fileHash.bytes)
            change.set("expected_size", size)
        }
    }

    /// The verified file is at its destination, durably (R108).
    package func completeDownload(
        fileHash: SHA256Digest, size: Int64, verification: Verification, of lease: Lease
    ) async throws {
        try await update(lease, operation: "complete download") { change in
            try change.apply(.complete)
            change.set("file_hash_sha256", fileHash.bytes)
            change.set("expected_size", size)
            change.set("verification", verification.rawValue)
            change.set("last_good_byte_offset", size)
            change.set("control", ControlCommand.none.rawValue)
            change.clearError()
            change.releaseOwner()
        }
    }

    static func forgetProgress(_ change: inout RowChange) {
        change.set("downloaded_chunks", [])
        change.set("last_good_byte_offset", 0)
        change.setHash(nil)
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
                    chunk_size, state, created_at, updated_at)
                VALUES (:id, :server, :file, :url, :destination, :temp, :overwrites, :hash, :pinned,
                    :chunk, :state, :created, :created)
                """,
            arguments: [
                "id": status.id.text, "server": status.serverURL, "file": fileID, "url": url,
                "destination": download.destinationPath, "temp": download.tempPath,
                "overwrites": download.overwrites, "hash": download.expectedHash?.blob,
                "pinned": download.isHashPinned, "chunk": download.chunkSize,
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
