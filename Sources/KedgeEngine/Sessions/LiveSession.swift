internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// What the parts of the engine share.
struct EngineParts: Sendable {
    let metadata: any MetadataStore
    let bytes: any ByteStore
    let configuration: EngineConfiguration
    let clock: any WallClock
    let timer: any Clock<Duration>
    let pool: BlockingPool
    let makeGenerator: @Sendable () -> AnyGenerator
    let buffers: BufferPool
    /// The metadata when other nodes use it, too; nil when this process is alone.
    let fleet: (any FleetMetadataStore)?
    /// Names this process among the nodes.
    let nodeName: String
    let space = SpaceReservations()
    let leases = WriterLeases()
    let openAreas = OpenAreaCount()

    init(
        metadata: any MetadataStore, bytes: any ByteStore, configuration: EngineConfiguration,
        clock: any WallClock, timer: any Clock<Duration>, pool: BlockingPool,
        makeGenerator: @escaping @Sendable () -> AnyGenerator, buffers: BufferPool
    ) {
        self.metadata = metadata
        self.bytes = bytes
        self.configuration = configuration
        self.clock = clock
        self.timer = timer
        self.pool = pool
        self.makeGenerator = makeGenerator
        self.buffers = buffers
        fleet = bytes.isShared ? metadata as? any FleetMetadataStore : nil
        var generator = makeGenerator()
        nodeName = SessionID.random(using: &generator).text
    }

    /// A new identifier of any kind.
    func makeID<Identifier: RandomIdentifier>() -> Identifier {
        var generator = makeGenerator()
        return .random(using: &generator)
    }

    /// When a session that is active now will expire.
    var nextExpiry: Timestamp { clock.now().advanced(by: configuration.sessionLifetime) }
}

/// A session in use: its ledger, its writers, its staging area and its whole-file hash.
///
/// The actor decides who may write which bytes. State is read again after every suspension.
actor LiveSession {
    nonisolated let id: SessionID
    nonisolated let owner: OwnerID
    nonisolated let parts: EngineParts
    private(set) var ledger: SessionLedger
    private var writers: [WriterSlot: ActiveWriter] = [:]
    /// What this node may write in the eyes of the others, by chunk.
    private var tokens: [Int: WriterToken] = [:]
    /// Changes that this node has made to the session.
    private(set) var changeCount = 0
    private var staging: (any StagingArea)?
    private var openArea: OpenAreaCount.Mark?
    private(set) var lastUsed: Timestamp
    private(set) var isRetired = false
    nonisolated let prefix: PrefixHash

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

    /// Checks that the session's time is not over.
    ///
    /// - Throws: `SESSION_EXPIRED`.
    func requireCurrent() throws {
        lastUsed = parts.clock.now()
        guard !isExpired else { throw EngineError(.sessionExpired) }
    }

    /// Checks that the session takes bytes now.
    ///
    /// - Throws: `SESSION_EXPIRED`, `SESSION_CLOSED`.
    func requireOpen() throws {
        try requireCurrent()
        guard !isRetired else { throw EngineError(.unavailable, "The session is changing hands.") }
        guard ledger.record.state == .open else { throw EngineError.closed(ledger.record.state) }
    }

    /// The wire form of a session whose time is not over.
    func currentStatus() throws -> SessionStatus {
        try requireCurrent()
        return ledger.status
    }

    /// What is known of one chunk. A small value: holding on to the ledger while bytes move would
    /// make each commit copy the whole of it.
    func view(ofChunk index: Int) throws -> ChunkView {
        try requireCurrent()
        return ChunkView(
            layout: ledger.record.layout, digest: ledger.digest(ofChunk: index),
            partial: ledger.partials[index])
    }

    /// The answer to a chunk that is committed.
    func receipt(for put: ChunkPut) -> ChunkReceipt {
        ChunkReceipt(
            index: put.index, sha256: put.digest, receivedBytes: ledger.receivedByteCount,
            receivedChunkCount: ledger.committed.count, totalChunks: ledger.record.layout.chunkCount
        )
    }

    /// Takes a slot, stopping the writer that has it and waiting until its bytes are saved.
    ///
    /// The writer has a moment to end by itself: on a busy machine the end of its connection, and the
    /// bytes before that, may have arrived and not been seen yet, and stopping it would drop them.
    func claim(_ slot: WriterSlot, for writer: ActiveWriter) async throws {
        while let current = writers[slot] {
            let (timer, grace) = (parts.timer, parts.configuration.takeoverGrace)
            let stopping = Task {
                if grace > .zero { try await timer.sleep(for: grace) }
                current.interrupt(.replaced)
            }
            await current.finished()
            stopping.cancel()
        }
        try requireOpen()
        writers[slot] = writer
        guard case .chunk(let index) = slot, let fleet = parts.fleet else { return }
        do {
            tokens[index] = try await lease(index, from: fleet, for: writer)
            // What the writer before left may lie in the store only.
            try await refresh()
            try requireOpen()
        } catch {
            await release(slot, writer)
            throw error
        }
    }

    /// Gives a slot back.
    func release(_ slot: WriterSlot, _ writer: ActiveWriter) async {
        if case .chunk(let index) = slot, writers[slot] === writer,
            let token = tokens.removeValue(forKey: index)
        {
            await giveBack(token)
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

    /// Ends this object's part: no writer starts any more, and those under way stop.
    func retire() async {
        isRetired = true
        await interruptWriters(.sessionClosed)
        await closeStaging()
    }

    /// The open staging area.
    func stagingArea() async throws -> any StagingArea {
        if let staging { return staging }
        // Opening would make the area anew under a name that may belong to nobody any more.
        guard !isRetired else { throw EngineError(.sessionClosed) }
        let opened = try await parts.bytes.openStaging(ledger.record.stagingKey)
        // Another caller may have opened it during the wait; one descriptor is enough.
        if let staging {
            await opened.close()
            return staging
        }
        staging = opened
        openArea = OpenAreaCount.Mark(parts.openAreas)
        return opened
    }

    /// Gives up the staging area: on leaving memory, before promotion.
    func closeStaging() async {
        guard let open = staging else { return }
        staging = nil
        openArea = nil
        await open.close()
    }

    /// Gives up an area whose bytes are in doubt, unless another one was opened in its place already.
    func closeStaging(afterFailureOf area: any StagingArea) async {
        guard staging === area, area.isInDoubt else { return }
        await closeStaging()
    }

    /// The store says that the session is not what this object believes: it is loaded anew next time.
    func becomeStale() { isRetired = true }

    /// The session's expiry and hash progress as they go into the next transaction.
    ///
    /// - Parameter index: The chunk that is written.
    func touch(writing index: Int?) async -> SessionTouch {
        SessionTouch(
            id: id, expiresAt: parts.nextExpiry, prefix: await prefix.checkpointToSave(),
            writer: index.flatMap { tokens[$0] },
            revision: parts.fleet == nil ? nil : ledger.revision)
    }

    // MARK: Changes, each made after the store has made it.

    func recordCommit(_ chunks: [CommittedChunk], touch: SessionTouch) {
        changeCount += 1
        for chunk in chunks { ledger.insert(chunk) }
        ledger.setExpiry(touch.expiresAt)
    }

    func savedPartial(_ partial: PartialRecord, touch: SessionTouch) {
        changeCount += 1
        ledger.setPartial(partial)
        ledger.setExpiry(touch.expiresAt)
    }

    /// Forgets the partial of a chunk that this node writes.
    func discardPartial(_ index: Int) async throws {
        try await parts.metadata.discardPartial(of: id, index: index, by: tokens[index])
        changeCount += 1
        ledger.removePartial(index)
    }

    func declaredSize(_ byteCount: Int64) {
        changeCount += 1
        ledger.declareSize(byteCount)
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

    /// Takes over what the store says, after others have changed it.
    func apply(_ changes: SessionChanges) { ledger.apply(changes) }

    /// Lets the whole-file hash catch up with the committed prefix in the background.
    func followPrefix() async {
        let end = ledger.committedPrefixEnd
        // Bytes that the hash has passed are not needed on this node any more.
        await staging?.release(below: await prefix.offset)
        await prefix.follow(to: end) { [weak self] in
            guard let self else { throw EngineError(.sessionClosed) }
            return try await self.stagingArea()
        } save: { [weak self] checkpoint in
            try await self?.save(checkpoint)
        }
    }

    private func save(_ prefix: HashCheckpoint) async throws {
        try await parts.metadata.savePrefix(
            prefix, of: id, knowing: parts.fleet == nil ? nil : ledger.revision)
    }
}
