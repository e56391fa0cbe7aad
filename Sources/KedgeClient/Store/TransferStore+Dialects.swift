internal import GRDB
internal import KedgeModel

/// What uploads in other dialects than the native one write down.
extension TransferStore {
    /// The upload was begun at the server: its address is what makes it go on after a kill.
    func attachUpload(
        _ address: UploadAddress, expiresAt: Timestamp?, answer: ServerAnswer?, to lease: Lease
    ) async throws {
        try await update(lease, operation: "attach upload") { change in
            change.set("upload_url", address.url)
            change.set("interop_version", address.interopVersion)
            change.set("expires_at", expiresAt?.millisecondsSinceEpoch)
            change.set("uploaded_chunks", [])
            change.set("last_good_byte_offset", 0)
            change.setAnswer(answer)
        }
    }

    /// The server's word on how far it has come, which wins both ways (R62, R77).
    ///
    /// - Parameters:
    ///   - chunks: The chunks that lie before the offset as a whole.
    ///   - hash: The running whole-file hash as far as it is (R71).
    ///   - expiresAt: Nil when the server did not say; what it said before stays.
    ///   - attempts: Tries that were not counted yet.
    func recordOffset(
        _ offset: Int64, chunks: ChunkSet, hash: SavedHash, expiresAt: Timestamp?, attempts: Int,
        ofChunk index: Int, answer: ServerAnswer?, of lease: Lease
    ) async throws {
        try await update(lease, operation: "record offset") { change in
            change.set("uploaded_chunks", chunks.serialized)
            change.set("last_good_byte_offset", offset)
            if let expiresAt { change.set("expires_at", expiresAt.millisecondsSinceEpoch) }
            change.setHash(hash)
            change.clearError()
            change.setAnswer(answer)
            try change.countAttempts(attempts, ofChunk: index, in: lease.id)
        }
    }

    /// The upload is gone or not to be trusted: the next one starts with no byte (R75).
    ///
    /// - Parameter keepsHash: False when the bytes read so far are in doubt, too.
    func resetForNewUpload(keepsHash: Bool, of lease: Lease) async throws {
        try await update(lease, operation: "reset for new upload") { change in
            change.clear("upload_url", "interop_version", "expires_at")
            change.set("uploaded_chunks", [])
            change.set("last_good_byte_offset", 0)
            if !keepsHash {
                change.setHash(nil)
                change.clear("file_hash_sha256")
            }
        }
    }

    /// The server has all bytes (R78).
    ///
    /// - Parameters:
    ///   - digest: What we computed.
    ///   - file: The file's id, where the server is one of ours and said so.
    ///   - verification: Whether the server told the same digest.
    func completeUpload(
        digest: SHA256Digest, file: FileID?, verification: Verification, answer: ServerAnswer?,
        of lease: Lease
    ) async throws {
        try await update(lease, operation: "complete upload") { change in
            try change.apply(.complete)
            change.set("remote_file_id", file?.text)
            change.set("file_hash_sha256", digest.bytes)
            change.set("verification", verification.rawValue)
            change.set("control", ControlCommand.none.rawValue)
            change.clearError()
            change.setAnswer(answer)
            change.releaseOwner()
        }
    }
}
