internal import KedgeFiles
internal import KedgeMetrics
internal import KedgeModel

/// Turns the verified bytes of a session into a file. Its caller holds the lock on the session's
/// finalize.
struct Promoter: Sendable {
    let context: EngineContext
    let rows: any FinalizeQueue & GarbageQueue & ScrubRecords
    let digestLocks: KeyedLock<SHA256Digest>
    let sessionBytes: SessionBytes

    /// Turns an open session into a file if its whole-file hash is known.
    func finalizeOpen(
        _ session: LiveSession, expecting expected: SHA256Digest?
    ) async throws -> FinalizeOutcome {
        try await session.requireOpen()
        let ledger = await session.ledger
        let size = try Self.completeSize(ledger)
        guard await session.prefix.offset == size else {
            return .pending(verifiedBytes: await session.prefix.offset)
        }
        let digest = await session.prefix.digest
        try Self.require(digest, matches: expected)
        try Self.require(digest, matches: ledger.record.declaredDigest)
        return .completed(try await complete(session, digest: digest))
    }

    private static func completeSize(_ ledger: SessionLedger) throws -> Int64 {
        guard let size = ledger.record.fileSize else {
            throw EngineError(.sizeMismatch, "The file size was not declared.")
        }
        guard ledger.isComplete else {
            throw EngineError.missingChunks(ledger.missing)
        }
        guard ledger.committedByteCount == size else {
            throw EngineError(
                .sizeMismatch, "Received \(ledger.committedByteCount) of \(size) bytes.")
        }
        return size
    }

    private static func require(_ digest: SHA256Digest, matches expected: SHA256Digest?) throws {
        guard let expected, expected != digest else { return }
        throw EngineError.integrityMismatch(expected: expected, actual: digest)
    }

    /// Returns the file of a completed session, or resumes an interrupted finalize.
    func finishAgain(
        _ session: LiveSession, _ record: SessionRecord, expecting expected: SHA256Digest?
    ) async throws -> FileRecord {
        guard let digest = record.finalDigest else {
            throw EngineError(.internalError, cause: "a finalizing session has no digest")
        }
        try Self.require(digest, matches: expected)
        if record.state == .finalizing, await !session.ledger.isComplete {
            throw try await sessionBytes.invalidate(
                session, record, cause: "rows of chunks are missing while finalizing")
        }
        return try await complete(session, digest: digest)
    }

    /// Promotes the bytes and creates the file's row, after the steps 1 to 5 of ``ChunkWrite``.
    /// Each step is durable before the next, and can be repeated after a crash:
    ///
    /// 6. Row: the session is finalizing and has its digest.
    /// 7. Row: the blob whose name the bytes will take is superseded, if there is one.
    /// 8. Rename: the staging file gets the name of the blob, and the directories are synced
    ///    (``ByteStore/promote(_:to:)``).
    /// 9. Row: the file exists, and the session is completed.
    /// 10. Acknowledge: only then the client gets the file.
    private func complete(_ session: LiveSession, digest: SHA256Digest) async throws -> FileRecord {
        try await digestLocks.withLock(digest) {
            let start = ContinuousClock.now
            let record = try await rows.beginFinalize(
                of: session.id, digest: digest, fileID: context.makeID(),
                within: context.configuration.quota)
            await session.began(record)
            var location: String?
            if record.state != .completed {
                let keepsPrevious = try await supersedeBlob(record, digest)
                location = try await promote(session, record, digest, keepsPrevious)
            }
            let now = context.clock.now()
            let file: FileRecord
            do {
                file = try await rows.completeFinalize(
                    of: session.id, at: now, location: location,
                    keepUntil: now.advanced(by: context.configuration.supersededLifetime))
            } catch MetadataError.wrongState(let state) where location != nil {
                // Canceled meanwhile, and perhaps swept before the blob existed.
                try await rows.addToGarbage(record.stagingKey)
                throw MetadataError.wrongState(state)
            }
            await session.setState(.completed)
            if record.state != .completed {
                context.metrics.observe(.finalizeSeconds, since: start)
                context.noteCompletion(of: record, at: now)
            }
            // The session may have been completed long ago, and its file deleted or damaged since.
            guard file.deletedAt == nil else { throw EngineError(.fileGone) }
            guard file.damagedAt == nil else { throw EngineError(.fileDamaged) }
            return file
        }
    }

    /// Records that the session's bytes are about to take the name of a blob. Called before the
    /// rename, so that a superseded copy has a row from its first moment on.
    ///
    /// - Returns: False when the blob need not be kept.
    private func supersedeBlob(
        _ record: SessionRecord, _ digest: SHA256Digest
    ) async throws -> Bool {
        guard let local = context.bytes as? any LocalByteStore, let byteCount = record.fileSize,
            try await local.supersedes(
                record.stagingKey, BlobName(digest: digest, byteCount: byteCount))
        else { return true }
        let now = context.clock.now()
        // Readers keep a descriptor, so the copy is kept for the scrub alone.
        return try await rows.supersede(
            SupersededBlob(
                digest: digest, byteCount: byteCount, key: record.stagingKey, location: nil,
                keepUntil: now), at: now)
    }

    private func promote(
        _ session: LiveSession, _ record: SessionRecord, _ digest: SHA256Digest,
        _ keepsPrevious: Bool
    ) async throws -> String? {
        await session.interruptWriters(.sessionClosed)
        await session.closeStaging()
        do {
            var file = await sessionBytes.stagedFile(session)
            file.keepsPrevious = keepsPrevious
            return try await context.bytes.promote(file, to: digest)
        } catch ByteStoreError.notFound {
            try await session.refresh()
            // Another node was faster, and the area is a blob already.
            if await session.ledger.record.state == .completed { return nil }
            throw try await sessionBytes.invalidate(
                session, record, cause: "the staging area is missing")
        }
    }
}
