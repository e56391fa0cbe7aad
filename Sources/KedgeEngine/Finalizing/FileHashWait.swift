internal import KedgeModel

/// Waits for the whole-file hashes of complete sessions.
struct FileHashWait: Sendable {
    let context: EngineContext
    let registry: SessionRegistry
    let leases: FinalizeLeases
    let sessionBytes: SessionBytes

    /// Waits for the whole-file hash of a complete session. Runs before the lock is taken, so that
    /// a cancel does not wait for the hash.
    ///
    /// - Returns: The number of hashed bytes while the hash is incomplete; nil otherwise.
    func bytesStillUnverified(
        _ id: SessionID, owner: OwnerID, _ expected: SHA256Digest?, taking hasWork: inout Bool
    ) async throws -> Int64? {
        try await registry.withSession(id, owner: owner) { session in
            let ledger = await session.ledger
            guard ledger.record.state == .open || ledger.record.state == .finalizing,
                ledger.isComplete, let size = ledger.record.fileSize
            else { return nil }
            if context.traits.needsAssembly {
                do {
                    hasWork = try await leases.takeWork(on: id, expected)
                    guard hasWork else { return await session.prefix.offset }
                } catch MetadataError.wrongState {
                    // Another node was faster; its result is the answer.
                    try await session.refresh()
                    return nil
                }
            }
            guard ledger.record.state == .open else { return nil }
            await session.followPrefix()
            var isDone = try await session.prefix.wait(
                for: size, timeout: context.configuration.finalizeTimeout)
            if !isDone, context.traits.needsAssembly, await !session.prefix.isReadingBack {
                // The missing bytes are on other nodes, or only in the store.
                isDone = try await hashAssembled(session, size)
            }
            return isDone ? nil : await session.prefix.offset
        }
    }

    private func hashAssembled(_ session: LiveSession, _ size: Int64) async throws -> Bool {
        try await sessionBytes.assemble(session)
        await session.followPrefix()
        do {
            return try await session.prefix.wait(
                for: size, timeout: context.configuration.finalizeTimeout)
        } catch ByteStoreError.notFound {
            throw try await sessionBytes.invalidate(
                session, await session.ledger.record, cause: "the assembled bytes are missing")
        }
    }
}
