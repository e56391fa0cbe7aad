package import KedgeModel

extension TransferEngine {
    /// Turns a complete session into a file that is verified, durable and atomically visible.
    ///
    /// The bytes are in place and the hash is known, so the time does not grow with the file: one
    /// rename and two transactions. Idempotent.
    ///
    /// An empty session for which ``storedFiles(for:owner:firstChunk:)`` offers a file with the
    /// expected digest becomes a file with the same stored bytes.
    ///
    /// - Parameter reusesStoredFiles: False for a client that may not read files.
    /// - Throws: `MISSING_CHUNKS` (send them and ask again), `SIZE_MISMATCH`, `INTEGRITY_MISMATCH`
    ///   (chunks match their digests, so the expectation is of another file: check it, or start
    ///   over in a new session), `FILE_GONE` when the file was deleted since, `FILE_DAMAGED`,
    ///   `SESSION_NOT_FOUND`, `SESSION_EXPIRED`, `SESSION_CLOSED`.
    package func finalize(
        _ id: SessionID, owner: OwnerID, expecting expected: SHA256Digest? = nil,
        reusesStoredFiles: Bool = true
    ) async throws -> FinalizeOutcome {
        try await finalizer.finalize(
            id, owner: owner, expecting: expected, reusesStoredFiles: reusesStoredFiles)
    }

    /// Turns a complete session into a file and waits for it, even if finalizing takes long.
    /// Idempotent.
    ///
    /// - Parameter timeout: The timeout; ``EngineConfiguration/finishTimeout`` when nil.
    /// - Throws: The errors of ``finalize(_:owner:expecting:)``; `UNAVAILABLE` after the timeout.
    package func finish(
        _ id: SessionID, owner: OwnerID, expecting expected: SHA256Digest? = nil,
        timeout: Duration? = nil
    ) async throws -> FileRecord {
        try await finalizer.finish(id, owner: owner, expecting: expected, timeout: timeout)
    }
}
