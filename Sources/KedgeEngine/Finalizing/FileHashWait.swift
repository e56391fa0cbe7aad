internal import KedgeModel

/// Waits for the whole-file hashes of complete sessions.
struct FileHashWait: Sendable {
    let configuration: EngineConfiguration
    let registry: SessionRegistry
    let mode: any FinalizeMode
    let sessionBytes: SessionBytes
    let finalizeLocks: KeyedLock<SessionID>

    /// Waits for the whole-file hash of a complete session. Runs before the lock is taken, so that
    /// a cancel does not wait for the hash.
    ///
    /// - Returns: The number of hashed bytes while the hash is incomplete; nil otherwise.
    func bytesStillUnverified(_ attempt: inout FinalizeAttempt) async throws -> Int64? {
        try await registry.withSession(attempt.id, owner: attempt.owner) { session in
            let ledger = await session.ledger
            guard ledger.record.state == .open || ledger.record.state == .finalizing,
                ledger.isComplete, let size = ledger.record.fileSize
            else { return nil }
            switch try await mode.begin(attempt, of: session) {
            case .begun: attempt.hasBegun = true
            case .onOtherNode: return await session.prefix.offset
            case .over: return nil
            }
            guard ledger.record.state == .open else { return nil }
            let isHashed = try await waitForHash(of: session, size)
            return isHashed ? nil : await session.prefix.offset
        }
    }

    /// - Returns: True when all bytes are hashed.
    private func waitForHash(of session: LiveSession, _ size: Int64) async throws -> Bool {
        let revision = await session.ledger.revision
        await session.followPrefix()
        do {
            let isDone = try await session.prefix.wait(
                for: size, timeout: configuration.finalizeTimeout)
            guard !isDone, await !session.prefix.isReadingBack else { return isDone }
            return try await mode.hashRest(of: session, byteCount: size)
        } catch let damage as DamagedChunks {
            throw try await invalidate(session, damage, knowing: revision)
        } catch ByteStoreError.notFound {
            let all = DamagedChunks(indexes: await session.ledger.committed.indexes)
            throw try await invalidate(session, all, knowing: revision)
        } catch {
            // Another request may have retired the session's object, which closes its staging area.
            guard await session.isRetired else { throw error }
            throw EngineError(.unavailable, "The upload has just changed; try again.")
        }
    }

    /// Invalidates damaged chunks, but not while another request makes the file, or after one has
    /// invalidated them.
    private func invalidate(
        _ session: LiveSession, _ damage: DamagedChunks, knowing revision: Int64
    ) async throws -> EngineError {
        try await finalizeLocks.withLock(session.id) {
            try await sessionBytes.invalidate(session, damage, knowing: revision)
        }
    }
}
