internal import KedgeFiles
internal import KedgeModel
internal import Logging

extension TransferEngine {
    /// Reconciles rows and bytes after a stop of any kind. Called once, before anything else.
    ///
    /// Finishes finalizing sessions. Invalidates chunks whose bytes are missing and logs that at
    /// level critical; clients send them again. Moves bytes without a row to quarantine, and never
    /// deletes them.
    package func recover() async throws {
        // A shared store is never scanned by a single node.
        guard let local = context.bytes as? any LocalByteStore else { return }
        try await translating {
            try await removeUncountedRivals(in: local)
            for session in try await context.metadata.unfinishedSessions() {
                if session.record.state == .finalizing {
                    await finishInterrupted(session.record)
                } else {
                    try await checkBytes(of: session, in: local)
                }
            }
            for key in try await local.stagingKeys()
            where try await !context.metadata.isKnown(key) {
                context.logger.error(
                    "bytes without a session were put aside", metadata: ["staging.key": "\(key)"])
                try await local.quarantine(key)
            }
        }
    }

    /// Removes files of rivals that no row counts. They remain when a process stops between
    /// committing a chunk and removing its rival. Rivals of sessions that can still be adopted
    /// stay. Rivals without a session are moved to quarantine.
    private func removeUncountedRivals(in local: any LocalByteStore) async throws {
        let found = try await local.rivals()
        guard !found.isEmpty else { return }
        let keys = Set(found.map(\.key))
        var counted: [StagingKey: Set<Int>] = [:]
        for session in try await context.metadata.unfinishedSessions()
        where keys.contains(session.record.stagingKey) {
            let record = session.record
            let progress = try await context.metadata.progress(of: record.id, owner: record.owner)
            let rivals = (progress?.partials ?? []).filter(\.isRival)
            counted[record.stagingKey] = Set(rivals.map(\.index))
        }
        for name in found {
            if let indexes = counted[name.key] {
                if !indexes.contains(name.index) { try await local.removeRival(name) }
            } else if try await !context.metadata.isKnown(name.key) {
                context.logger.error(
                    "bytes without a session were put aside",
                    metadata: ["staging.key": "\(name.key)"])
                try await local.quarantine(name.key)
            }
        }
    }

    private func finishInterrupted(_ record: SessionRecord) async {
        do {
            _ = try await finalize(record.id, owner: record.owner)
            context.logger.notice("finished an upload", metadata: ["session.id": "\(record.id)"])
        } catch let error as EngineError where error.code == .missingChunks {
            // Already logged, and the session is open again.
            return
        } catch let error as EngineError
            where error.code == .sessionClosed || error.code == .sessionNotFound
        {
            // Canceled since it was listed.
            return
        } catch {
            // A full disk, for example. The session stays finalizing; the client asks again, or the
            // next sweep retries. Other sessions do not wait for it.
            context.logger.error(
                "an upload could not be finished yet",
                metadata: [
                    "session.id": "\(record.id)", "error": "\(String(reflecting: error))",
                ])
        }
    }

    private func checkBytes(
        of session: UnfinishedSession, in local: any LocalByteStore
    ) async throws {
        guard session.claimedEnd > 0 else { return }
        let record = session.record
        let byteCount = try await local.stagingByteCount(record.stagingKey) ?? 0
        guard byteCount < session.claimedEnd else { return }
        guard let progress = try await context.metadata.progress(of: record.id, owner: record.owner)
        else { return }
        let lost = progress.chunks.filter { chunk in
            (record.layout.range(ofChunk: chunk.index)?.start ?? 0) + chunk.byteCount > byteCount
        }
        context.logger.critical(
            "acknowledged bytes are missing on disk",
            metadata: [
                "session.id": "\(record.id)", "expected": "\(session.claimedEnd)",
                "found": "\(byteCount)", "chunks": "\(lost.count)",
            ])
        try await context.metadata.dropChunks(lost.map(\.index), of: record.id)
    }

    /// Runs one sweep: expires sessions, forgets those past their grace, evicts idle sessions from
    /// memory, removes garbage, and resumes finalizes and concatenations that were left behind.
    package func sweep() async throws {
        await keepBusySessions()
        try await translating {
            let now = context.clock.now()
            let graceEnd = now.advanced(by: .zero - configuration.expiryGrace)
            let ended = try await context.metadata.expireSessions(
                now: now, graceEnd: graceEnd, limit: 500)
            for id in ended { await registry.drop(id) }
            let idleSince = now.advanced(by: .zero - configuration.idleSessionLifetime)
            await registry.evict(idleSince: idleSince)
        }
        await collectGarbage()
        try await translating {
            try await finishLeftBehind()
            try await concatenator.resumeConcatenations()
        }
    }

    /// Extends empty sessions whose first bytes are on their way.
    private func keepBusySessions() async {
        for id in context.busySessions.ids {
            do {
                try await registry.session(inMemory: id)?.stayAliveWhileEmpty()
            } catch {
                context.logger.warning(
                    "a session that is being written was not renewed",
                    metadata: ["session.id": "\(id)", "error": "\(String(reflecting: error))"])
            }
        }
    }

    /// Finishes sessions whose finalize failed, or whose client did not ask again.
    private func finishLeftBehind() async throws {
        if context.bytes.assembles { return try await takeOverFinalizes() }
        for record in try await context.metadata.finalizingSessions() {
            guard !isEnding else { return }
            // A finalize under way needs no help, and the sweep does not wait for it.
            if await finalizer.isFinalizing(record.id) { continue }
            await finishInterrupted(record)
        }
    }

    /// Removes garbage. A failure is logged, and the next sweep retries.
    func collectGarbage() async {
        do {
            let now = context.clock.now()
            let end = now.advanced(by: .seconds(300))
            let items = try await context.metadata.claimGarbage(
                now: now, leaseUntil: end, limit: context.bytes.assembles ? 20 : 200)
            for item in items { await tryToRemove(item, claimedUntil: end) }
        } catch {
            context.logger.error(
                "removing unneeded bytes failed",
                metadata: ["error": "\(String(reflecting: error))"])
        }
    }

    /// Removes garbage after a request that made some. On a local disk the caller waits for it;
    /// where it needs requests to another service, it runs in the background.
    func collectGarbageSoon() async {
        guard context.bytes.assembles else { return await collectGarbage() }
        garbageCollections.start(0) { [self] in await collectGarbage() }
    }

    /// Removes one item. A failure is only logged, so that the other items are removed.
    private func tryToRemove(_ garbage: Garbage, claimedUntil end: Timestamp) async {
        do {
            try await remove(garbage, claimedUntil: end)
        } catch {
            context.logger.error(
                "removing unneeded bytes failed",
                metadata: ["error": "\(String(reflecting: error))"])
        }
    }

    private func remove(_ garbage: Garbage, claimedUntil end: Timestamp) async throws {
        switch garbage {
        case .staging(let key, let state):
            let needed = try await context.metadata.blobLocation(fromStaging: key)
            try await context.bytes.removeStaging(key, state: state, keeping: needed)
        case .blob(let digest):
            try await digestLocks.withLock(digest) {
                // A finalize may have begun to use the blob again before this lock was held.
                guard try await !context.metadata.isNeeded(digest) else { return }
                for copy in try await context.metadata.supersededBlobs(of: digest)
                where copy.location == nil {
                    try await context.bytes.removeSuperseded(copy)
                    try await context.metadata.forgetSuperseded(copy)
                }
                try await context.bytes.removeBlob(digest)
            }
        }
        try await context.metadata.forgetGarbage(garbage, claimedUntil: end)
    }

    /// Stops all work and closes the stores. The engine must not be used afterwards.
    package func close() async throws {
        await interruptWriters()
        await concatenator.close()
        await finalizer.close()
        await garbageCollections.close()
        await finishHealthCheck()
        try await translating {
            try await context.metadata.close()
            await context.bytes.close()
        }
    }
}
