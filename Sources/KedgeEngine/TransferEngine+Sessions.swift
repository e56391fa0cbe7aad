package import KedgeModel

extension TransferEngine {
    /// Creates a session, or returns the one created before by the same key and request.
    package func createSession(
        _ new: NewSession, owner: OwnerID, idempotencyKey: IdempotencyKey? = nil
    ) async throws -> SessionStatus {
        try await createOrFindSession(new, owner: owner, idempotencyKey: idempotencyKey).status
    }

    /// Creates a session, or returns the one created before, and reports which. For requests that
    /// cancel their session when they fail.
    package func createOrFindSession(
        _ new: NewSession, owner: OwnerID, idempotencyKey: IdempotencyKey? = nil
    ) async throws -> CreatedSession {
        try await sessions.create(new, owner: owner, idempotencyKey: idempotencyKey)
    }

    /// Returns the session's status.
    ///
    /// - Parameter withDigests: Whether the status includes the digests of the received bytes.
    /// - Throws: `SESSION_NOT_FOUND`, `SESSION_EXPIRED`.
    package func sessionStatus(
        _ id: SessionID, owner: OwnerID, withDigests: Bool = false
    ) async throws -> SessionStatus {
        try await sessions.status(of: id, owner: owner, withDigests: withDigests)
    }

    /// Returns up to four files of the owner that the session may be: they have its size and chunk
    /// size, and their bytes were verified lately. None when the session has bytes.
    ///
    /// - Parameter firstChunk: The digest of the first chunk that the files must have; nil for any.
    package func storedFiles(
        for id: SessionID, owner: OwnerID, firstChunk: SHA256Digest? = nil
    ) async throws -> [StoredFile] {
        try await translating {
            try await finalizer.reuse.offers(for: id, owner: owner, firstChunk: firstChunk)
        }
    }

    /// Returns sessions of an owner that are open or finalizing, newest first.
    package func unfinishedSessions(
        of owner: OwnerID, after cursor: SessionCursor?, limit: Int
    ) async throws -> [UnfinishedUpload] {
        try await sessions.unfinished(of: owner, after: cursor, limit: limit)
    }

    /// Returns what an owner has stored and reserved, with the limits that apply.
    package func quota(of owner: OwnerID) async throws -> OwnerQuota {
        try await sessions.quota(of: owner)
    }

    /// Cancels a session: stops its writers and removes its bytes. Idempotent.
    ///
    /// - Throws: `SESSION_CLOSED` when it is completed: delete the file instead.
    package func cancelSession(_ id: SessionID, owner: OwnerID) async throws {
        try await sessions.cancel(id, owner: owner)
    }

    /// Cancels a session that no client will resume. A failure is only logged.
    package func discardSession(_ id: SessionID, owner: OwnerID) async {
        await sessions.discard(id, owner: owner)
    }
}
