internal import KedgeFiles
internal import KedgeModel
internal import Logging

/// Turns an empty session into a file with bytes that its owner has stored before, so that no byte
/// is sent twice. Only files of the session's owner count: clients learn nothing about others.
struct StoredFileReuse: Sendable {
    /// Maximum number of files that are offered to a client.
    private static let maxOfferedFileCount = 4

    let context: EngineContext
    let registry: SessionRegistry
    let files: FileService
    let digestLocks: KeyedLock<SHA256Digest>

    /// Returns files that the session may be; none when it has bytes already.
    ///
    /// - Parameter firstChunk: The digest of the first chunk that the files must have; nil for any.
    func offers(
        for id: SessionID, owner: OwnerID, firstChunk: SHA256Digest?
    ) async throws -> [StoredFile] {
        guard let shape = try await shape(of: id, owner: owner) else { return [] }
        return try await context.metadata.storedFiles(
            like: shape, firstChunk.map { .firstChunk($0) } ?? .any,
            limit: Self.maxOfferedFileCount)
    }

    /// Completes the session if it is empty and its owner has a file with this digest, verified
    /// lately and not known to be damaged. Must run while no other finalize of the session does.
    ///
    /// - Returns: Nil when the bytes have to be sent, also when a store fails: the client can do
    ///   without this.
    /// - Throws: `SESSION_NOT_FOUND`, `SESSION_EXPIRED`, `FILE_GONE`, `FILE_DAMAGED`;
    ///   `CancellationError`.
    func complete(
        _ id: SessionID, owner: OwnerID, digest: SHA256Digest
    ) async throws -> FileRecord? {
        guard let shape = try await shape(of: id, owner: owner) else { return nil }
        let file: FileRecord?
        do {
            file = try await complete(id, shape, digest)
        } catch let error as CancellationError {
            throw error
        } catch {
            context.logger.warning(
                "use of stored bytes failed",
                metadata: ["session.id": "\(id)", "error": "\(CauseText.of(error))"])
            file = nil
        }
        // Writers of the empty session stop; it is loaded again, perhaps with the file's chunks.
        await registry.drop(id, ofOwner: owner)
        // Another node may have completed the session before, and the file be gone since.
        guard file?.deletedAt == nil else { throw EngineError(.fileGone) }
        guard file?.damagedAt == nil else { throw EngineError(.fileDamaged) }
        return file
    }

    private func complete(
        _ id: SessionID, _ shape: StoredFileShape, _ digest: SHA256Digest
    ) async throws -> FileRecord? {
        guard try await hasBytes(digest, of: shape) else { return nil }
        // The lock waits for an upload of the same bytes that replaces the blob.
        return try await digestLocks.withLock(digest) {
            try await context.metadata.completeFinalize(
                of: id, from: shape, digest: digest, fileID: context.makeID(),
                at: context.clock.now())
        }
    }

    /// Whether the bytes of a file can be opened. Marks a file without its bytes as damaged.
    private func hasBytes(_ digest: SHA256Digest, of shape: StoredFileShape) async throws -> Bool {
        let stored = try await context.metadata.storedFiles(like: shape, .whole(digest), limit: 1)
        guard let match = stored.first else { return false }
        do {
            let opened = try await files.openFile(
                try await files.file(match.remoteFileId, owner: shape.owner))
            await opened.reader.close()
            return true
        } catch let error as EngineError
            where [.fileDamaged, .fileGone, .fileNotFound].contains(error.code)
        {
            return false
        }
    }

    /// The shape of the files that the session may be; nil unless it is open and empty.
    private func shape(of id: SessionID, owner: OwnerID) async throws -> StoredFileShape? {
        let ledger = try await registry.withSession(id, owner: owner) { session in
            try await session.requireCurrent()
            return await session.ledger
        }
        let record = ledger.record
        guard record.state == .open, record.sourceIDs == nil, ledger.claimedEnd == 0,
            let byteCount = record.fileSize, byteCount > 0
        else { return nil }
        return StoredFileShape(
            owner: owner, byteCount: byteCount, chunkSize: record.chunkSize,
            verifiedSince: context.clock.now().advanced(
                by: .zero - context.configuration.verificationLifetime))
    }
}
