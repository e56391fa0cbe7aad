package import KedgeModel

extension TransferEngine {
    /// Receives one chunk, or a part of one.
    ///
    /// Bytes are written, then synced, then the row is committed, and only then this returns. A
    /// body that breaks off, or ends before the chunk does, leaves a durable partial. The next
    /// upload of the chunk continues after it.
    ///
    /// - Throws: `SESSION_NOT_FOUND`, `SESSION_EXPIRED`, `SESSION_CLOSED`, `CHUNK_OUT_OF_BOUNDS`,
    ///   `CHUNK_HASH_REQUIRED`, `RANGE_MISMATCH`, `LENGTH_MISMATCH`, `CHUNK_CONFLICT`,
    ///   `OFFSET_MISMATCH`, `CHUNK_HASH_MISMATCH`, `WRITER_REPLACED`, `STORAGE_FULL`, `BUSY`,
    ///   `UNAVAILABLE`, `UPLOAD_IS_FINAL`.
    package func putChunk(
        _ put: ChunkPut, to id: SessionID, owner: OwnerID, body: some ByteBody
    ) async throws -> ChunkPutOutcome {
        // With a digest of the body alone, the client must send the whole body again.
        let outcome = try await admittingWrite(
            of: body, to: id, owner: owner, isEvictable: !put.isBodyDigest
        ) { place in
            try await registry.withSession(id, owner: owner) { session in
                try await session.requireOwnBytes()
                return try await sessionWriter.put(put, to: session, in: place, body: body)
            }
        }
        if case .created = outcome { try await awaitHash(of: id, owner: owner) }
        return outcome
    }

    /// Delays the acknowledgement while the whole-file hash lags too far behind, which bounds the
    /// time of finalize. Holds no writer slot, so only this client waits.
    private func awaitHash(of id: SessionID, owner: OwnerID) async throws {
        try await translating {
            try await registry.withSession(id, owner: owner) { session in
                let floor = await session.ledger.committedPrefixEnd - configuration.maxHashLag
                guard floor > 0, await session.prefix.offset < floor else { return }
                do {
                    _ = try await session.prefix.wait(
                        for: floor, timeout: configuration.finalizeTimeout)
                } catch is DamagedChunks {
                    // This chunk is durable; finalize reports the damaged ones.
                }
            }
        }
    }
}
