internal import GRDB
internal import KedgeModel

/// Uploads that continue a session named by the user.
extension TransferStore {
    /// Adopts the given session and the bytes that the server has of it, because the file matches.
    ///
    /// - Parameter digests: Digests of the received chunks, by index.
    func takeUpSession(
        _ status: SessionStatus, digests: [Int: SHA256Digest], answer: ServerAnswer?,
        of lease: Lease
    ) async throws {
        let now = now()
        try await update(lease, operation: "take up session") { change in
            change.set(.sessionID, status.sessionId.text)
            change.set(.expiresAt, status.expiresAt.millisecondsSinceEpoch)
            change.set(.chunkSize, status.chunkSize)
            change.set(.uploadedChunks, ChunkSet(digests.keys).serialized)
            change.setAnswer(answer)
            // Written before the digests: a change of the chunk size deletes the existing ones.
            try change.write(lease.id, at: now)
            for (index, digest) in digests {
                try change.setDigest(digest, ofChunk: index, in: lease.id)
            }
        }
    }

    /// Binds an unfinished upload to the session that the command names now, or releases it from
    /// the one named before.
    ///
    /// - Returns: Nil if the upload needs no such change.
    /// - Throws: `USAGE` if the upload has another session already.
    static func bind(
        _ wanted: UploadTransfer, to row: TransferRow, isRunning: Bool, in database: Database
    ) throws -> UploadTransfer? {
        let existing = try UploadTransfer(row)
        guard let given = wanted.givenSessionID else {
            guard existing.givenSessionID != nil, !isRunning else { return nil }
            return try release(existing, row, wanted, in: database)
        }
        let isSame = existing.identity.comparison(with: wanted.identity) != .changed
        let isBound = existing.givenSessionID == given || existing.sessionID == given
        // A running upload detects a changed file by itself.
        if isBound, isRunning { return existing }
        // The session of a failed upload may be replaced if the user named it.
        let isReplaceable =
            existing.sessionID == nil || existing.sessionID == given
            || (existing.givenSessionID != nil && existing.status.state == .failed)
        guard isReplaceable, !isRunning else {
            throw TransferError(
                .usage, operation: "upload", resource: existing.status.id.text,
                explanation: "Transfer \(existing.status.id.text) uploads this file to another"
                    + " session; finish or cancel it first.")
        }
        var change = RowChange(row, in: database)
        change.set(.givenSessionID, given.text)
        // Only the credential of this command: a link kept before may be that of another session,
        // permit new uploads alone, or be one that the service refuses.
        change.set(.link, wanted.link)
        change.set(.sessionLink, wanted.sessionLink)
        if existing.sessionID != given || !isSame { try begin(wanted, &change) }
        return try written(change, existing, wanted, in: database)
    }

    /// Discards all progress until the file was compared with the session.
    private static func begin(_ wanted: UploadTransfer, _ change: inout RowChange) throws {
        try change.discardDigests()
        change.clear(.sessionID, .adoptSessionID, .expiresAt, .maxConcurrentChunks, .fileHash)
        change.set(.uploadedChunks, [])
        change.set(.lastGoodByteOffset, 0)
        change.setHash(nil)
        let identity = wanted.identity
        change.set(.fileSize, identity.byteCount)
        change.set(.modifiedNanoseconds, identity.modifiedNanoseconds)
        change.set(.changedNanoseconds, identity.changedNanoseconds)
        change.set(.inode, Int64(bitPattern: identity.inode))
    }

    /// Releases the upload from the session named before.
    private static func release(
        _ existing: UploadTransfer, _ row: TransferRow, _ wanted: UploadTransfer,
        in database: Database
    ) throws -> UploadTransfer {
        var change = RowChange(row, in: database)
        change.clear(.givenSessionID)
        return try written(change, existing, wanted, in: database)
    }

    private static func written(
        _ change: RowChange, _ existing: UploadTransfer, _ wanted: UploadTransfer,
        in database: Database
    ) throws -> UploadTransfer {
        try change.write(existing.status.id, at: wanted.status.createdAt)
        return try UploadTransfer(TransferRow.find(existing.status.id, in: database))
    }
}
