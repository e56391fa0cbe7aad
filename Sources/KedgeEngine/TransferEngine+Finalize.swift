internal import KedgeFiles
package import KedgeModel
internal import Logging

/// The outcome of a finalize.
package enum FinalizeOutcome: Sendable {
    case completed(FileRecord)
    /// The whole-file hash is still being computed and covers this many bytes. The client asks
    /// again.
    case pending(verifiedBytes: Int64)
}

extension TransferEngine {
    /// Turns a complete session into a file that is verified, durable and atomically visible.
    ///
    /// The bytes are in place and the hash is known, so the time does not grow with the file: one
    /// rename and two transactions. Idempotent.
    ///
    /// - Throws: `MISSING_CHUNKS` (send them and ask again), `SIZE_MISMATCH`, `INTEGRITY_MISMATCH`
    ///   (chunks match their digests, so the expectation is of another file: check it, or start
    ///   over in a new session), `FILE_GONE` when the file was deleted since, `FILE_DAMAGED`,
    ///   `SESSION_NOT_FOUND`, `SESSION_EXPIRED`, `SESSION_CLOSED`.
    package func finalize(
        _ id: SessionID, owner: OwnerID, expecting expected: SHA256Digest? = nil
    ) async throws -> FinalizeOutcome {
        try await translating {
            var hasWork = false
            defer { if hasWork { releaseLease(of: id) } }
            try await commitLast(of: id, owner: owner)
            if let verified = try await bytesStillUnverified(
                id, owner: owner, expected, taking: &hasWork)
            {
                if context.bytes.assembles { finishInBackground(id, owner: owner, expected) }
                return .pending(verifiedBytes: verified)
            }
            do {
                let outcome = try await finalizeLocked(id, owner: owner, expecting: expected)
                // This may be the last partial upload that a final upload waits for.
                if case .completed = outcome { startFinalUploads(of: id, owner: owner) }
                return outcome
            } catch let error as EngineError where error.isAnswerToFinalize {
                // The client gets this error, so the finalize is no longer pending.
                if context.bytes.assembles {
                    try await context.metadata.dropFinalize(of: id, by: workLease)
                }
                throw error
            }
        }
    }

    private func finalizeLocked(
        _ id: SessionID, owner: OwnerID, expecting expected: SHA256Digest?
    ) async throws -> FinalizeOutcome {
        try await finalizeLocks.withLock(id) {
            try await registry.withSession(id, owner: owner) { session in
                let record = await session.ledger.record
                if record.state == .completed || record.state == .finalizing {
                    return .completed(try await finishAgain(session, record, expecting: expected))
                }
                return try await finalizeOpen(session, expecting: expected)
            }
        }
    }

    /// Waits for the whole-file hash of a complete session. Runs before the lock is taken, so that
    /// a cancel does not wait for the hash.
    ///
    /// - Returns: The number of hashed bytes while the hash is incomplete; nil otherwise.
    private func bytesStillUnverified(
        _ id: SessionID, owner: OwnerID, _ expected: SHA256Digest?, taking hasWork: inout Bool
    ) async throws -> Int64? {
        try await registry.withSession(id, owner: owner) { session in
            let ledger = await session.ledger
            guard ledger.record.state == .open || ledger.record.state == .finalizing,
                ledger.isComplete, let size = ledger.record.fileSize
            else { return nil }
            if context.bytes.assembles {
                do {
                    hasWork = try await takeWork(on: id, expected)
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
                for: size, timeout: configuration.finalizeTimeout)
            if !isDone, context.bytes.assembles, await !session.prefix.isReadingBack {
                // The missing bytes are on other nodes, or only in the store.
                isDone = try await hashAssembled(session, size)
            }
            return isDone ? nil : await session.prefix.offset
        }
    }

    private func hashAssembled(_ session: LiveSession, _ size: Int64) async throws -> Bool {
        try await assemble(session)
        await session.followPrefix()
        do {
            return try await session.prefix.wait(
                for: size, timeout: configuration.finalizeTimeout)
        } catch ByteStoreError.notFound {
            throw try await invalidate(
                session, await session.ledger.record, cause: "the assembled bytes are gone")
        }
    }

    private func finalizeOpen(
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
            throw EngineError(.sizeMismatch, "The size of the file was never declared.")
        }
        guard ledger.isComplete else {
            var error = EngineError(.missingChunks)
            error.missing = ledger.missing
            throw error
        }
        guard ledger.committedByteCount == size else {
            throw EngineError(
                .sizeMismatch, "\(ledger.committedByteCount) bytes arrived, \(size) were declared.")
        }
        return size
    }

    private static func require(_ digest: SHA256Digest, matches expected: SHA256Digest?) throws {
        guard let expected, expected != digest else { return }
        var error = EngineError(.integrityMismatch)
        error.expectedDigest = expected
        error.actualDigest = digest
        throw error
    }

    /// Returns the file of a completed session, or resumes an interrupted finalize.
    private func finishAgain(
        _ session: LiveSession, _ record: SessionRecord, expecting expected: SHA256Digest?
    ) async throws -> FileRecord {
        guard let digest = record.finalDigest else {
            throw EngineError(.internalError, cause: "a finalizing session without a digest")
        }
        try Self.require(digest, matches: expected)
        if record.state == .finalizing, await !session.ledger.isComplete {
            throw try await invalidate(
                session, record, cause: "rows of chunks are gone while finalizing")
        }
        return try await complete(session, digest: digest)
    }

    /// Promotes the bytes and creates the file's row. Every step can be repeated after a crash.
    func complete(_ session: LiveSession, digest: SHA256Digest) async throws -> FileRecord {
        try await digestLocks.withLock(digest) {
            let record = try await context.metadata.beginFinalize(
                of: session.id, digest: digest, fileID: context.makeID())
            await session.began(record)
            var location: String?
            if record.state != .completed {
                let keepsPrevious = try await supersedeBlob(record, digest)
                location = try await promote(session, record, digest, keepsPrevious)
            }
            let now = context.clock.now()
            let file: FileRecord
            do {
                file = try await context.metadata.completeFinalize(
                    of: session.id, at: now, location: location,
                    keepUntil: now.advanced(by: configuration.supersededLifetime))
            } catch MetadataError.wrongState(let state) where location != nil {
                // Canceled meanwhile, and perhaps swept before the blob existed.
                try await context.metadata.leaveToSweep(record.stagingKey)
                throw MetadataError.wrongState(state)
            }
            await session.setState(.completed)
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
        return try await context.metadata.supersede(
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
            var file = await stagedFile(session)
            file.keepsPrevious = keepsPrevious
            return try await context.bytes.promote(file, to: digest)
        } catch ByteStoreError.notFound {
            try await session.refresh()
            // Another node was faster, and the area is a blob already.
            if await session.ledger.record.state == .completed { return nil }
            throw try await invalidate(session, record, cause: "the staging area is gone")
        }
    }

    /// Makes the bytes of a complete session readable from end to end.
    func assemble(_ session: LiveSession) async throws {
        do {
            try await context.bytes.assemble(await stagedFile(session))
        } catch ByteStoreError.notFound {
            throw try await invalidate(
                session, await session.ledger.record, cause: "saved chunks are gone")
        }
    }

    private func stagedFile(_ session: LiveSession) async -> StagedFile {
        let ledger = await session.ledger
        return StagedFile(
            key: ledger.record.stagingKey, byteCount: ledger.record.fileSize ?? 0,
            // Other stores find the bytes without the list, which can be long.
            chunks: context.bytes.assembles ? ledger.chunks : [])
    }

    /// Invalidates acknowledged chunks whose bytes are missing or damaged. The session is open
    /// again, and the client sends them again.
    ///
    /// - Parameter index: The damaged chunk; all chunks when nil.
    /// - Returns: The error for the client, with the missing chunks.
    func invalidate(
        _ session: LiveSession, _ record: SessionRecord, only index: Int? = nil, cause: String
    ) async throws -> EngineError {
        context.logger.critical(
            "received bytes are missing or damaged",
            metadata: ["session.id": "\(record.id)", "cause": "\(cause)"])
        if record.state == .finalizing { try await context.metadata.reopen(record.id) }
        let indexes = await session.ledger.committed.indexes
        try await context.metadata.dropChunks(index.map { [$0] } ?? indexes, of: record.id)
        await registry.drop(record.id)
        var error = EngineError(.missingChunks, cause: cause)
        error.missing =
            index.map { [$0...$0] }
            ?? record.layout.chunkCount.map { $0 > 0 ? [0...($0 - 1)] : [] }
        return error
    }
}

extension EngineError {
    /// True when the client learns from the error that the session cannot become a file as it is.
    fileprivate var isAnswerToFinalize: Bool {
        [.missingChunks, .sizeMismatch, .integrityMismatch].contains(code)
    }
}
