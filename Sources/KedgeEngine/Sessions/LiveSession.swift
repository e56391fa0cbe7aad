internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// What the parts of the engine share.
struct EngineParts: Sendable {
    let metadata: any MetadataStore
    let bytes: any ByteStore
    let configuration: EngineConfiguration
    let clock: any WallClock
    let pool: BlockingPool
    let buffers: BufferPool

    /// When a session that is active now will expire.
    var nextExpiry: Timestamp { clock.now().advanced(by: configuration.sessionLifetime) }
}

/// A session in use: its ledger, its writers, its staging area and its whole-file hash.
///
/// The actor decides who may write which bytes. State is read again after every suspension.
actor LiveSession {
    nonisolated let id: SessionID
    nonisolated let owner: OwnerID
    let parts: EngineParts
    private(set) var ledger: SessionLedger
    private var writers: [WriterSlot: ActiveWriter] = [:]
    private var staging: (any StagingArea)?
    private(set) var lastUsed: Timestamp
    private var isRetired = false
    let prefix: PrefixHash

    init(_ progress: SessionProgress, parts: EngineParts) {
        id = progress.record.id
        owner = progress.record.owner
        ledger = SessionLedger(progress)
        lastUsed = parts.clock.now()
        self.parts = parts
        prefix = PrefixHash(restoring: progress.record.prefix, parts: parts)
    }

    /// True when the session's time is over.
    var isExpired: Bool {
        switch ledger.record.state {
        case .open: ledger.record.expiresAt <= parts.clock.now()
        case .expired: true
        default: false
        }
    }

    /// The ledger, after checking that the session's time is not over.
    ///
    /// - Throws: `SESSION_EXPIRED`.
    func requireCurrent() throws -> SessionLedger {
        lastUsed = parts.clock.now()
        guard !isExpired else { throw EngineError(.sessionExpired) }
        return ledger
    }

    /// The ledger, after checking that the session takes bytes now.
    ///
    /// - Throws: `SESSION_EXPIRED`, `SESSION_CLOSED`.
    func requireOpen() throws -> SessionLedger {
        let ledger = try requireCurrent()
        guard !isRetired else { throw EngineError(.unavailable, "The session is changing hands.") }
        guard ledger.record.state == .open else { throw EngineError.closed(ledger.record.state) }
        return ledger
    }

    /// Takes a slot, stopping the writer that has it and waiting until its bytes are saved.
    func claim(_ slot: WriterSlot, for writer: ActiveWriter) async throws -> SessionLedger {
        while let current = writers[slot] {
            current.interrupt(.replaced)
            await current.finished()
        }
        let ledger = try requireOpen()
        writers[slot] = writer
        return ledger
    }

    /// Gives a slot back.
    func release(_ slot: WriterSlot, _ writer: ActiveWriter) {
        if writers[slot] === writer { writers[slot] = nil }
        writer.finish()
    }

    /// Stops every writer and waits for them.
    func interruptWriters(_ reason: InterruptReason) async {
        while let (slot, writer) = writers.first {
            writer.interrupt(reason)
            await writer.finished()
            if writers[slot] === writer { writers[slot] = nil }
        }
    }

    /// Ends this object's part: no writer starts any more, and those under way stop.
    func retire() async {
        isRetired = true
        await interruptWriters(.sessionClosed)
        await closeStaging()
    }

    /// The open staging area.
    func stagingArea() async throws -> any StagingArea {
        if let staging { return staging }
        let opened = try await parts.bytes.openStaging(ledger.record.stagingKey)
        // Another caller may have opened it during the wait; one descriptor is enough.
        if let staging {
            await opened.close()
            return staging
        }
        staging = opened
        return opened
    }

    /// Gives up the staging area: after a failed sync, on leaving memory, before promotion.
    func closeStaging() async {
        guard let open = staging else { return }
        staging = nil
        await open.close()
    }

    /// The session's expiry and hash progress as they go into the next transaction.
    func touch() async -> SessionTouch {
        SessionTouch(
            id: id, expiresAt: parts.nextExpiry, prefix: await prefix.checkpointToSave())
    }

    // MARK: Changes, each made after the store has made it.

    func recordCommit(_ chunks: [CommittedChunk], touch: SessionTouch) {
        for chunk in chunks { ledger.insert(chunk) }
        ledger.setExpiry(touch.expiresAt)
    }

    func savedPartial(_ partial: PartialRecord, touch: SessionTouch) {
        ledger.setPartial(partial)
        ledger.setExpiry(touch.expiresAt)
    }

    func discardedPartial(_ index: Int) { ledger.removePartial(index) }
    func declaredSize(_ byteCount: Int64) { ledger.declareSize(byteCount) }
    func setState(_ state: SessionState) { ledger.setState(state) }

    func began(_ record: SessionRecord) {
        guard let digest = record.finalDigest, let fileID = record.fileID else { return }
        ledger.finalize(digest: digest, fileID: fileID)
    }

    /// Lets the whole-file hash catch up with the committed prefix in the background.
    func followPrefix() async {
        let end = ledger.committedPrefixEnd
        await prefix.follow(to: end) { [weak self] in
            guard let self else { throw EngineError(.sessionClosed) }
            return try await self.stagingArea()
        }
    }
}
