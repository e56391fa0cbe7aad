internal import KedgeFiles
internal import KedgeMetrics
internal import KedgeModel
internal import Logging

/// The sessions as clients see them: creates, shows and cancels them.
struct SessionService: Sendable {
    let context: EngineContext
    let registry: SessionRegistry
    let finalizer: Finalizer
    let garbageCollector: GarbageCollector

    /// Creates a session, or returns the one created before by the same key and request, or by the
    /// same request with the same one-use link.
    func create(
        _ new: NewSession, owner: OwnerID, idempotencyKey: IdempotencyKey? = nil
    ) async throws -> CreatedSession {
        try await translating {
            var new = new
            new.fileName = FileName.replacingUnfit(new.fileName)
            var record = try makeRecord(new, owner: owner)
            if let adopted = new.adopting {
                // The old session's writers stop first, because the new session may adopt its
                // bytes.
                await registry.dropExpired(adopted, owner: owner)
                try await takeChunkSize(of: adopted, into: &record, new)
            }
            let outcome = try await context.metadata.createSession(
                record, idempotencyKey: idempotencyKey?.scoped(to: new.permit.link),
                adopting: new.adopting, in: room(for: new))
            switch outcome {
            case .created(let record):
                return try await begin(record, new)
            case .createdInstead(let record, let ended):
                await registry.drop(ended)
                context.logger.debug(
                    "empty session removed for a new one", metadata: ["session.id": "\(ended)"])
                await garbageCollector.collectGarbageSoon()
                return try await begin(record, new)
            case .full:
                throw EngineError(.tooManySessions)
            case .sourceUsedUp:
                let limit = context.configuration.maxConcatenationsPerPartialUpload
                throw EngineError(
                    .badRequest, "An upload can be used in at most \(limit) final uploads.")
            case .linkUsed:
                throw EngineError(.linkExpired, "The link was used for another upload.")
            case .quotaExceeded(let refusal):
                throw EngineError.refused(refusal)
            case .replayed(let record):
                return CreatedSession(
                    status: try await status(of: record.id, owner: owner), isNew: false,
                    createdAt: record.createdAt)
            case .keyConflict:
                throw EngineError(.idempotencyConflict)
            }
        }
    }

    /// Returns what the owner has stored and reserved, with the limits that apply.
    func quota(of owner: OwnerID) async throws -> OwnerQuota {
        try await translating {
            try await context.metadata.quota(of: owner, within: context.configuration.quota)
        }
    }

    /// Returns sessions that are open or finalizing, newest first.
    func unfinished(
        of owner: OwnerID, after cursor: SessionCursor?, limit: Int
    ) async throws -> [UnfinishedUpload] {
        try await translating {
            try await context.metadata.unfinishedSessions(of: owner, after: cursor, limit: limit)
        }
    }

    /// Gives a session the chunk size of the one that it adopts, if that is how an earlier version
    /// rounded the same size. Otherwise the bytes could not be adopted.
    private func takeChunkSize(
        of adopted: SessionID, into record: inout SessionRecord, _ new: NewSession
    ) async throws {
        let old = try await context.metadata.progress(of: adopted, owner: record.owner)?.record
        guard let old, old.chunkSize != record.chunkSize,
            abs(old.chunkSize - record.chunkSize) < context.configuration.chunkSizeMultiple,
            new.fittingChunkSize(for: old.chunkSize, context.configuration) == record.chunkSize
        else { return }
        record.chunkSize = old.chunkSize
    }

    /// Returns the row of a session that begins now.
    private func makeRecord(_ new: NewSession, owner: OwnerID) throws -> SessionRecord {
        let chunkSize = try new.validate(context.configuration)
        let id: SessionID = context.makeID()
        let now = context.clock.now()
        return SessionRecord(
            id: id, owner: owner, stagingKey: StagingKey(id), fileName: new.fileName,
            mimeType: new.mimeType, fileSize: new.fileSize, chunkSize: chunkSize,
            declaredDigest: new.declaredDigest, metadata: new.metadata, sourceIDs: new.sourceIDs,
            state: .open, createdAt: now,
            // A final upload waits for the bytes of its partial uploads.
            expiresAt: new.sourceIDs == nil ? context.firstExpiry : context.nextExpiry,
            maxByteCount: new.permit.maxByteCount, minByteCount: new.permit.minByteCount,
            createdBy: new.permit.createdBy, linkID: new.permit.link?.linkID)
    }

    private func room(for new: NewSession) -> SessionRoom {
        SessionRoom(
            maxOpenCount: context.configuration.maxOpenSessions, client: new.client?.network,
            // Partial uploads of the new session must not make room for it either.
            busy: context.busySessions.ids.union(new.sourceIDs ?? []),
            maxConcatenationCount: context.configuration.maxConcatenationsPerPartialUpload,
            link: new.permit.link, quota: context.configuration.quota)
    }

    /// Completes the creation of a session after its row was inserted.
    private func begin(_ record: SessionRecord, _ new: NewSession) async throws -> CreatedSession {
        context.metrics.increment(.sessionsCreated)
        if new.adopting == nil {
            try await requireRoom(for: record)
        } else if record.stagingKey != StagingKey(record.id) {
            // It has the adopted bytes from the start.
            try await registry.withSession(record.id, owner: record.owner) {
                try await $0.stayAlive()
            }
        }
        return CreatedSession(
            status: try await status(of: record.id, owner: record.owner), isNew: true,
            createdAt: record.createdAt)
    }

    /// Refuses a file that cannot fit before any of it is sent. Runs after the row was inserted,
    /// because the bytes of a replayed or an adopting request are on this disk already.
    private func requireRoom(for record: SessionRecord) async throws {
        do {
            let byteCount = context.roomNeeded(
                for: record.fileSize ?? 0, chunkSize: record.chunkSize)
            try await context.space.reserving(byteCount, of: context.bytes) {}
        } catch {
            try await context.metadata.cancelSession(record.id, owner: record.owner)
            throw error
        }
    }

    /// Returns the session's status.
    func status(
        of id: SessionID, owner: OwnerID, withDigests: Bool = false
    ) async throws -> SessionStatus {
        try await translating {
            try await registry.withSession(id, owner: owner) {
                try await $0.currentStatus(withDigests: withDigests)
            }
        }
    }

    /// Cancels a session: stops its writers and removes its bytes. Idempotent.
    func cancel(_ id: SessionID, owner: OwnerID) async throws {
        try await translating {
            try await finalizer.withoutFinalize(of: id) {
                try await context.metadata.cancelSession(id, owner: owner)
                await registry.drop(id, ofOwner: owner)
            }
        }
        context.metrics.increment(.sessionsCanceled)
        await garbageCollector.collectGarbageSoon()
    }

    /// Cancels a session that no client will resume. A failure is only logged.
    func discard(_ id: SessionID, owner: OwnerID) async {
        do {
            try await cancel(id, owner: owner)
        } catch {
            // The sweep removes it when it expires.
            context.logger.warning(
                "cancellation of a failed upload failed",
                metadata: ["session.id": "\(id)", "error": "\(String(reflecting: error))"])
        }
    }
}

extension IdempotencyKey {
    /// Returns the key for creates by one link. Its holders must not find the sessions of the
    /// owner's other keys.
    fileprivate func scoped(to link: LinkUse?) -> IdempotencyKey {
        guard let link else { return self }
        return IdempotencyKey(key: "\(link.linkID) \(key)", fingerprint: fingerprint)
    }
}
