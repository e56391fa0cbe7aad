internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// A session in memory: its ledger, its writers, its staging area and its whole-file hash.
///
/// The actor decides which writer may write which bytes. State is read again after every
/// suspension.
package actor LiveSession {
    nonisolated let id: SessionID
    nonisolated let owner: OwnerID
    nonisolated let context: EngineContext
    private(set) var ledger: SessionLedger
    private var writers: [WriterSlot: ActiveWriter] = [:]
    /// Fencing tokens that this node holds, by chunk index.
    private var tokens: [Int: FencingToken] = [:]
    /// Number of changes that this node has made to the session.
    private(set) var changeCount = 0
    private(set) var staging: (any StagingArea)?
    private var openArea: OpenAreaGauge.Increment?
    private(set) var lastUsed: Timestamp
    private(set) var isRetired = false
    nonisolated let prefix: PrefixHash

    init(_ progress: SessionProgress, context: EngineContext) {
        id = progress.record.id
        owner = progress.record.owner
        ledger = SessionLedger(progress)
        lastUsed = context.clock.now()
        self.context = context
        prefix = PrefixHash(restoring: progress.record.prefix, context: context)
    }

    /// True when the session has expired.
    var isExpired: Bool {
        switch ledger.record.state {
        case .open: ledger.record.expiresAt <= context.clock.now()
        case .expired: true
        default: false
        }
    }

    /// Checks that the session has not expired, and marks it as used.
    ///
    /// - Throws: `SESSION_EXPIRED`.
    func requireCurrent() throws {
        lastUsed = context.clock.now()
        guard !isExpired else { throw EngineError(.sessionExpired) }
    }

    /// Maximum number of grace periods of a writer whose bytes still arrive.
    private static let maxGraceCount = 4

    /// Takes a slot. Stops its current writer and waits until that one's bytes are saved.
    ///
    /// The writer gets a grace period to end by itself, and further ones while bytes arrive. On a
    /// busy machine its last bytes and the end of its connection may have arrived but not been read
    /// yet. Stopping it at once would drop them.
    package func claim(_ slot: WriterSlot, for writer: ActiveWriter) async throws {
        while let current = writers[slot] {
            let (timer, grace) = (context.timer, context.configuration.takeoverGrace)
            let stopping = Task {
                for _ in 0..<Self.maxGraceCount where grace > .zero {
                    let before = current.byteCount
                    try await timer.sleep(for: grace)
                    guard current.byteCount > before else { break }
                }
                current.interrupt(.replaced)
            }
            await current.finished()
            stopping.cancel()
        }
        try requireOpen()
        writers[slot] = writer
        guard case .chunk(let index) = slot, let fleet = context.fleet else { return }
        do {
            tokens[index] = try await lease(index, from: fleet, for: writer)
            // The previous writer's bytes may be known only to the store.
            try await refresh()
            try requireOpen()
            tokens[index]?.knownRevision = ledger.revision
        } catch {
            await release(slot, writer)
            throw error
        }
    }

    /// Takes a chunk's slot for an append, which spans chunks. A newer writer of this chunk stops
    /// the whole append.
    package func claimChunk(_ index: Int, stopping writer: ActiveWriter) async throws
        -> ActiveWriter
    {
        let slot = ActiveWriter(partOf: writer)
        slot.attach { [writer] in writer.interrupt(slot.interruption ?? .replaced) }
        do {
            try await claim(.chunk(index), for: slot)
        } catch {
            slot.finish()
            throw error
        }
        return slot
    }

    /// Releases a slot, and the lease on its chunk.
    package func release(_ slot: WriterSlot, _ writer: ActiveWriter) async {
        if case .chunk(let index) = slot, writers[slot] === writer,
            let token = tokens.removeValue(forKey: index)
        {
            await release(token)
        }
        if writers[slot] === writer { writers[slot] = nil }
        writer.finish()
    }

    /// Stops every writer without waiting for them.
    func stopWriters(_ reason: InterruptReason) {
        for writer in writers.values { writer.interrupt(reason) }
    }

    /// Stops every writer and waits for them.
    func interruptWriters(_ reason: InterruptReason) async {
        while let (slot, writer) = writers.first {
            writer.interrupt(reason)
            await writer.finished()
            if writers[slot] === writer { writers[slot] = nil }
        }
    }

    /// Retires this object: stops its writers, lets no new one start, and closes the staging area.
    func retire() async {
        isRetired = true
        await interruptWriters(.sessionClosed)
        await closeStaging()
    }

    /// Returns the staging area, opened if necessary.
    func stagingArea() async throws -> any StagingArea {
        if let staging { return staging }
        // Opening would create the area again, perhaps for a session that no longer exists.
        guard !isRetired else { throw EngineError(.sessionClosed) }
        let opened = try await context.bytes.openStaging(ledger.record.stagingKey)
        // Another caller may have opened it during the wait; one descriptor is enough.
        if let staging {
            await opened.close()
            return staging
        }
        staging = opened
        openArea = OpenAreaGauge.Increment(context.openAreas)
        return opened
    }

    /// Closes the staging area, before eviction from memory or promotion.
    func closeStaging() async {
        guard let open = staging else { return }
        staging = nil
        openArea = nil
        await open.close()
    }

    /// Closes an area whose bytes are in doubt, unless another one replaced it already.
    func closeStaging(afterFailureOf area: any StagingArea) async {
        guard staging === area, area.isInDoubt else { return }
        await closeStaging()
    }

    /// Marks this object as outdated: the next request loads the session again.
    func becomeStale() { isRetired = true }

    /// Returns the session's expiry, hash progress and fencing tokens for the next transaction.
    ///
    /// - Parameter indexes: The chunks that are written.
    func touch(writing indexes: [Int]) async -> SessionUpdate {
        let prefix = await prefix.checkpointToSave()
        let writers = indexes.compactMap { tokens[$0] }
        return SessionUpdate(
            id: id, expiresAt: context.nextExpiry, prefix: prefix,
            writer: writers.first, otherWriters: Array(writers.dropFirst()),
            revision: context.fleet == nil ? nil : ledger.revision,
            quota: context.configuration.quota)
    }

    // MARK: Changes, each made after the store has made it.

    func recordCommit(_ chunks: [CommittedChunk], touch: SessionUpdate) {
        changeCount += 1
        for chunk in chunks { ledger.insert(chunk) }
        ledger.setExpiry(touch.expiresAt)
    }

    func savedPartial(_ partial: PartialRecord, touch: SessionUpdate) {
        changeCount += 1
        ledger.setPartial(partial)
        ledger.setExpiry(touch.expiresAt)
    }

    /// Discards the partial, or the rival, of a chunk that this node writes.
    func discardPartial(_ index: Int, isRival: Bool = false) async throws {
        try await context.metadata.discardPartial(
            of: id, index: index, isRival: isRival, by: tokens[index])
        changeCount += 1
        if isRival { ledger.removeRival(index) } else { ledger.removePartial(index) }
    }

    /// Sets the size of the file, durably and once. Idempotent.
    ///
    /// - Throws: `SIZE_MISMATCH` when another size was declared, or more bytes were received;
    ///   `FILE_TOO_LARGE`, `FORBIDDEN` when the session does not permit the size; `QUOTA_EXCEEDED`,
    ///   `FILE_TOO_LARGE` when its owner does not.
    func declareSize(_ byteCount: Int64) async throws {
        let known = ledger.record.fileSize
        guard known != byteCount else { return }
        guard known == nil, byteCount >= ledger.claimedEnd else {
            throw EngineError(.sizeMismatch, "The size of the file is not \(byteCount) bytes.")
        }
        if let refusal = ledger.record.refusal(ofSize: byteCount) { throw refusal }
        do {
            try await context.metadata.declareSize(
                byteCount, of: id, within: context.configuration.quota)
        } catch MetadataError.wrongState(.open) {
            // Another node has just recorded another size.
            throw EngineError(.sizeMismatch, "The size of the file is not \(byteCount) bytes.")
        }
        changeCount += 1
        ledger.declareSize(byteCount)
    }

    /// Extends an open session as any other activity would. Writes only if that adds at least a
    /// tenth of the lifetime.
    func stayAlive() async throws {
        let margin = context.configuration.sessionLifetime / 10
        guard ledger.record.state == .open, !isExpired,
            ledger.record.expiresAt < context.nextExpiry.advanced(by: .zero - margin)
        else { return }
        let touch = await touch(writing: [])
        _ = try await context.metadata.commit([], touching: touch)
        recordCommit([], touch: touch)
    }

    /// Extends a session whose first bytes are on their way but count only at their end.
    func stayAliveWhileEmpty() async throws {
        let margin = context.configuration.emptySessionLifetime / 2
        guard ledger.record.state == .open, !isExpired, ledger.claimedEnd == 0,
            ledger.record.expiresAt < context.firstExpiry.advanced(by: .zero - margin)
        else { return }
        var touch = await touch(writing: [])
        touch.expiresAt = context.firstExpiry
        _ = try await context.metadata.commit([], touching: touch)
        recordCommit([], touch: touch)
    }

    /// Shortens the life of an open session, as the store has done.
    func expire(by time: Timestamp) {
        guard ledger.record.state == .open, ledger.record.expiresAt > time else { return }
        changeCount += 1
        ledger.setExpiry(time)
    }

    func setState(_ state: SessionState) {
        changeCount += 1
        ledger.setState(state)
    }

    func began(_ record: SessionRecord) {
        guard ledger.record.state != .completed, let digest = record.finalDigest,
            let fileID = record.fileID
        else { return }
        changeCount += 1
        ledger.finalize(digest: digest, fileID: fileID)
    }

    /// Applies changes that other nodes made in the store.
    func apply(_ changes: SessionChanges) { ledger.apply(changes) }
}
