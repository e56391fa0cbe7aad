package import KedgeFiles
internal import KedgeLocks
package import KedgeModel
package import Logging

/// The heart of the server: sessions, chunks, offsets, finalize, expiry.
///
/// Every door (native, tus, IETF) calls it; it knows two ports and no protocol. What it acknowledges
/// is durable: bytes on stable storage first, then the row, then the answer.
package final class TransferEngine: Sendable {
    let parts: EngineParts
    let registry: SessionRegistry
    let digestLocks = KeyedLock<SHA256Digest>()
    let finalizeLocks = KeyedLock<SessionID>()
    let fillLocks = KeyedLock<Int>()
    let waitingCompositions = WaitingCompositions()
    /// Where housekeeping goes on among the open compositions.
    let lastComposition = Mutex<SessionID?>(nil)
    let logger: Logger
    let backgroundFinalizes = BackgroundTasks<SessionID>()
    let compositionChecks = BackgroundTasks<SessionID>()
    let garbageCollections = BackgroundTasks<Int>()
    let openBlobs = OpenBlobs()
    let transferClock = TransferClock()
    let scrubCounts = Mutex(ScrubCounts())
    private let healthProbe: HealthProbe
    /// Finalizes that this node has in the eyes of the others.
    let heldFinalizes = Mutex<[SessionID: Int]>([:])
    private let places: WritePlaces
    private let isDraining = Mutex(false)

    package init(
        metadata: any MetadataStore, bytes: any ByteStore,
        configuration: EngineConfiguration = EngineConfiguration(),
        clock: any WallClock = SystemWallClock(), timer: any Clock<Duration> = .continuous,
        pool: BlockingPool,
        makeGenerator: @escaping @Sendable () -> AnyGenerator = {
            AnyGenerator(SystemRandomNumberGenerator())
        },
        logger: Logger
    ) {
        parts = EngineParts(
            metadata: metadata, bytes: bytes, configuration: configuration, clock: clock,
            timer: timer, pool: pool, makeGenerator: makeGenerator,
            buffers: BufferPool(
                bufferCapacity: configuration.bufferCapacity, minCapacity: 16 << 10,
                budget: configuration.bufferByteCount))
        registry = SessionRegistry(parts: parts)
        places = WritePlaces(configuration)
        healthProbe = HealthProbe(clock: timer) {
            try await metadata.checkHealth()
            try await bytes.checkHealth()
        }
        self.logger = logger
    }

    /// The time as the stores see it.
    package var now: Timestamp { parts.clock.now() }

    /// The limits and times in force.
    package var configuration: EngineConfiguration { parts.configuration }

    /// Succeeds when both stores answer and can write, as far as a try of the last second tells.
    package func checkHealth() async throws {
        try await translating { try await healthProbe.check() }
    }

    /// Returns when no try of the stores is under way.
    func finishHealthCheck() async { await healthProbe.finish() }

    /// Runs a body-carrying operation if there is room for one more.
    ///
    /// - Parameter isEvictable: True when what the body brings counts as it comes: then it may be stopped, and
    ///   asked to come back, while others wait.
    /// - Throws: `BUSY` at the limit and when stopped so, `UNAVAILABLE` while the process is ending.
    func admittingWrite<Result>(
        of body: some ByteBody, to session: SessionID?, owner: OwnerID, isEvictable: Bool,
        _ write: (WritePlace) async throws -> Result
    ) async throws -> Result {
        guard !isDraining.withLock({ $0 }) else {
            throw EngineError(.unavailable, "The service is stopping.")
        }
        let origin = body.origin
        let place = try places.enter(
            WriteAdmission.Arrival(
                key: ShareKey(owner: owner, address: origin.address), session: session,
                isEvictable: isEvictable), progress: origin.progress)
        defer { transferClock.tick() }
        do {
            let result = try await translating { try await write(place) }
            places.leave(place, isWhole: true)
            return result
        } catch {
            places.leave(place, isWhole: false)
            throw error
        }
    }

    /// Lets a body go on whoever waits: nothing of it counts before its end.
    func hold(_ place: WritePlace) { places.hold(place) }

    /// True once the bodies under way were told to stop.
    var isEnding: Bool { isDraining.withLock { $0 } }

    /// Number of bodies being written now.
    package var activeWriteCount: Int { places.count }

    /// Gives memory back that a rush of requests has left and nobody uses.
    package func giveBackMemory() async {
        parts.buffers.releaseUnused()
        await parts.pool.compute { ProcessMemory.giveBack() }
    }

    /// Takes no new bodies, stops the ones under way and saves what they brought as partials.
    package func interruptWriters() async {
        isDraining.withLock { $0 = true }
        for session in await registry.sessions {
            await session.interruptWriters(.draining)
        }
    }

    /// Runs a writing body in a task of its own, so that another writer, a cancel or the end of the
    /// process can stop it without cancelling whoever awaits it.
    func writing<Result: Sendable>(
        _ slot: WriterSlot, of live: LiveSession, in place: WritePlace? = nil,
        _ body: @escaping @Sendable (ActiveWriter) async throws -> Result
    ) async throws -> Result {
        let writer = ActiveWriter()
        parts.busySessions.enter(live.id)
        defer { parts.busySessions.leave(live.id) }
        place?.attach(writer)
        do {
            try await live.claim(slot, for: writer)
        } catch {
            writer.finish()
            throw error
        }
        // Awaited right here; cancelled by this task, or through the writer.
        let task = Task { try await body(writer) }
        writer.attach { task.cancel() }
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            task.cancel()
        }
        await live.release(slot, writer)
        do {
            return try result.get()
        } catch is CancellationError {
            // Stopped while it read: whoever stopped it had a reason to tell.
            throw writer.interruption?.error ?? CancellationError()
        }
    }
}
