internal import GRDB
internal import KedgeModel

/// Records of uploads with other protocols than the native one.
extension TransferStore {
    /// Records the URL of an upload created at the server, which a later run needs to resume.
    func attachUpload(
        _ address: UploadAddress, expiresAt: Timestamp?, answer: ServerAnswer?, to lease: Lease
    ) async throws {
        try await update(lease, operation: "attach upload") { change in
            change.set(.uploadURL, address.url)
            change.set(.interopVersion, address.interopVersion)
            change.set(.expiresAt, expiresAt?.millisecondsSinceEpoch)
            change.set(.uploadedChunks, [])
            change.set(.lastGoodByteOffset, 0)
            change.setAnswer(answer)
        }
    }

    /// Records the offset that the server reports. The server's state is authoritative.
    ///
    /// - Parameters:
    ///   - chunks: The chunks that lie entirely before the offset.
    ///   - hash: The running whole-file hash so far.
    ///   - expiresAt: Nil keeps the recorded time.
    ///   - attempts: Tries that the record does not include yet.
    func recordOffset(
        _ offset: Int64, chunks: ChunkSet, hash: SavedHash, expiresAt: Timestamp?, attempts: Int,
        ofChunk index: Int, answer: ServerAnswer?, of lease: Lease
    ) async throws {
        try await update(lease, operation: "record offset") { change in
            change.set(.uploadedChunks, chunks.serialized)
            change.set(.lastGoodByteOffset, offset)
            if let expiresAt { change.set(.expiresAt, expiresAt.millisecondsSinceEpoch) }
            change.setHash(hash)
            change.clearError()
            change.setAnswer(answer)
            try change.countAttempts(attempts, ofChunk: index, in: lease.id)
        }
    }

    /// Discards an upload that is gone or cannot be trusted: the next one starts without bytes.
    ///
    /// - Parameter keepsHash: False if the bytes read so far are in doubt, too.
    func resetForNewUpload(keepsHash: Bool, of lease: Lease) async throws {
        try await update(lease, operation: "reset for new upload") { change in
            change.clear(.uploadURL, .interopVersion, .expiresAt)
            change.set(.uploadedChunks, [])
            change.set(.lastGoodByteOffset, 0)
            if !keepsHash {
                change.setHash(nil)
                change.clear(.fileHash)
            }
        }
    }

    /// Completes the upload: the server has all bytes.
    ///
    /// - Parameters:
    ///   - digest: The digest computed here.
    ///   - file: The file's id, if a Kedge server reported it.
    ///   - verification: Whether the server reported the same digest.
    func completeUpload(
        digest: SHA256Digest, file: FileID?, verification: Verification, answer: ServerAnswer?,
        of lease: Lease
    ) async throws {
        try await update(lease, operation: "complete upload") { change in
            try change.apply(.complete)
            change.forgetSecrets()
            change.set(.remoteFileID, file?.text)
            change.set(.fileHash, digest.bytes)
            change.set(.verification, verification.rawValue)
            change.setCommand(nil)
            change.clearError()
            change.setAnswer(answer)
            change.releaseOwner()
        }
    }
}
