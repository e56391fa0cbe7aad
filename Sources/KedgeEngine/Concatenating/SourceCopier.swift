internal import KedgeModel

/// Copies the bytes of partial uploads into their final upload. Invalidates those that turn out to
/// be damaged, so that they are sent again.
struct SourceCopier: Sendable {
    let context: EngineContext
    let registry: SessionRegistry
    let finalizer: Finalizer
    let appender: SourceAppender

    /// Copies the bytes of complete sessions into an open one, in their order. Continues after the
    /// bytes that are there already. Idempotent. Only one caller at a time, on all nodes.
    ///
    /// - Throws: `MISSING_CHUNKS` when a partial upload is not complete; `SIZE_MISMATCH` when the
    ///   session was declared with another size; the errors of appending; for each partial upload
    ///   the errors of reading it, and `FILE_GONE`.
    func fill(_ id: SessionID, from ids: [SessionID], owner: OwnerID) async throws {
        let sources = try await sourceUploads(ids, owner: owner)
        let sum = sources.last?.end ?? 0
        let rest = try await registry.withSession(id, owner: owner) { session in
            try await session.requireOpen()
            try await session.declareSize(sum)
            let ledger = await session.ledger
            return context.roomNeeded(
                for: sum - ledger.contiguousOffset, chunkSize: ledger.record.chunkSize)
        }
        // Only checks for room. The appends reserve it, and it must not be counted twice.
        try await context.space.reserving(rest, of: context.bytes) {}
        for upload in sources { try await copy(upload, to: id, owner: owner) }
    }

    /// Returns the partial uploads with their offsets in the final upload.
    ///
    /// - Throws: `FILE_TOO_LARGE`, and for a partial upload the errors of ``fill(_:from:owner:)``.
    private func sourceUploads(_ ids: [SessionID], owner: OwnerID) async throws -> [SourceUpload] {
        var sources: [SourceUpload] = []
        for id in ids {
            try await finalizer.commitLast(of: id, owner: owner)
            let byteCount = try await completeByteCount(of: id, owner: owner)
            let start = sources.last?.end ?? 0
            guard byteCount <= context.configuration.maxFileSize - start else {
                throw context.tooLarge()
            }
            sources.append(SourceUpload(id: id, start: start, byteCount: byteCount))
        }
        return sources
    }

    private func completeByteCount(of id: SessionID, owner: OwnerID) async throws -> Int64 {
        try await registry.withSession(id, owner: owner) { session in
            try await session.requireCurrent()
            let ledger = await session.ledger
            guard [.open, .finalizing, .completed].contains(ledger.record.state) else {
                throw EngineError.closed(ledger.record.state)
            }
            guard ledger.isComplete, let byteCount = ledger.record.fileSize else {
                throw EngineError.missingChunks(
                    ledger.missing, "A partial upload is not complete.")
            }
            return byteCount
        }
    }

    private func copy(_ upload: SourceUpload, to id: SessionID, owner: OwnerID) async throws {
        do {
            try await appender.append(upload, to: id, owner: owner)
        } catch {
            // If the partial upload became a file meanwhile, its bytes are elsewhere. The lock
            // waits for a finalize under way. An error of this query is dropped, because the first
            // one is more useful.
            let state = try? await finalizer.withoutFinalize(of: upload.id) {
                try await registry.withSession(upload.id, owner: owner) {
                    try await $0.currentStatus().state
                }
            }
            switch error {
            case let source as DamagedSourceUpload where source.damage.isCopied:
                throw try await discardCopy(id, owner: owner, after: source.damage)
            case let source as DamagedSourceUpload where state == .open:
                throw try await finalizer.withoutFinalize(of: upload.id) {
                    try await finalizer.sessionBytes.invalidate(
                        source.session, DamagedChunks(indexes: [source.damage.index]),
                        knowing: source.revision)
                }
            case let damage as DamagedChunk where damage.isCopied:
                throw try await discardCopy(id, owner: owner, after: damage)
            case let damage as DamagedChunk:
                throw EngineError(.internalError, cause: Self.cause(of: damage))
            default:
                guard state == .completed, !context.isEnding else { throw error }
                try await appender.append(upload, to: id, owner: owner)
            }
        }
    }

    /// Invalidates what was copied into the final upload. The next attempt copies it again, and
    /// decides whether the partial upload is damaged.
    private func discardCopy(
        _ id: SessionID, owner: OwnerID, after damage: DamagedChunk
    ) async throws -> EngineError {
        let cause = Self.cause(of: damage)
        return try await registry.withSession(id, owner: owner) { session in
            _ = try await finalizer.sessionBytes.invalidate(
                session, await session.ledger.record, cause: cause)
            return EngineError(.unavailable, cause: cause)
        }
    }

    private static func cause(of damage: DamagedChunk) -> String {
        "chunk \(damage.index) of a partial upload changed after receipt"
    }
}

/// A partial upload and its range in the final upload.
struct SourceUpload: Sendable {
    let id: SessionID
    /// Offset of the partial upload's first byte in the final upload.
    let start: Int64
    let byteCount: Int64

    var end: Int64 { start + byteCount }
}
