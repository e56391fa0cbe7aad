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
        for part in sources { try await copy(part, to: id, owner: owner) }
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

    private func copy(_ part: SourceUpload, to id: SessionID, owner: OwnerID) async throws {
        do {
            try await appender.append(part, to: id, owner: owner)
        } catch {
            // If the partial upload became a file meanwhile, its bytes are elsewhere. The lock
            // waits for a finalize under way. An error of this query is dropped, because the first
            // one is more useful.
            let state = try? await finalizer.withoutFinalize(of: part.id) {
                try await registry.withSession(part.id, owner: owner) {
                    try await $0.currentStatus().state
                }
            }
            switch error {
            case let damage as DamagedPart:
                let cause = "chunk \(damage.index) of a partial upload changed after receipt"
                if damage.isCopied { _ = try await invalidate(id, owner: owner, cause: cause) }
                guard state == .open else { throw EngineError(.internalError, cause: cause) }
                throw try await invalidate(part.id, owner: owner, only: damage.index, cause: cause)
            case ByteStoreError.notFound where state == .open:
                throw try await invalidate(
                    part.id, owner: owner, cause: "bytes of a partial upload are missing")
            default:
                guard state == .completed, !context.isEnding else { throw error }
                try await appender.append(part, to: id, owner: owner)
            }
        }
    }

    /// Invalidates chunks of a session, so that they are sent or copied again.
    ///
    /// - Parameter index: The damaged chunk. All chunks when nil, or when the store cannot replace
    ///   one alone.
    private func invalidate(
        _ id: SessionID, owner: OwnerID, only index: Int? = nil, cause: String
    ) async throws -> EngineError {
        try await registry.withSession(id, owner: owner) { session in
            try await finalizer.sessionBytes.invalidate(
                session, await session.ledger.record,
                only: context.traits.replacesSingleChunks ? index : nil, cause: cause)
        }
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
