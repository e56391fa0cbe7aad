package import KedgeFiles
package import KedgeModel
package import Logging

/// The core of the server: sessions, chunks, offsets, finalize, expiry.
///
/// Every front end (native, tus, IETF) calls it. It depends on two ports and on no protocol. It
/// keeps admission and drain, and forwards the rest to owners.
/// Acknowledged bytes are durable: bytes reach stable storage first, then the row, then the client
/// gets the response.
package final class TransferEngine: Sendable {
    let context: EngineContext
    package let registry: SessionRegistry
    let sessions: SessionService
    let fileService: FileService
    let finalizer: Finalizer
    let concatenator: Concatenator
    let garbageCollector: GarbageCollector
    let recovery: Recovery
    let sweeper: Sweeper
    let scrubber: BlobScrubber
    let fleetNode: FleetNode
    private let transferClock: TransferClock
    private let healthProbe: HealthProbe
    private let places: WritePlaces
    let sessionWriter: SessionWriter

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
        context = EngineContext(
            metadata: metadata, bytes: bytes, configuration: configuration, clock: clock,
            timer: timer, pool: pool, makeGenerator: makeGenerator,
            buffers: BufferPool(
                bufferCapacity: configuration.bufferCapacity, minCapacity: 16 << 10,
                budget: configuration.bufferByteCount),
            logger: logger)
        registry = SessionRegistry(context: context)
        let places = WritePlaces(configuration)
        sessionWriter = SessionWriter(context: context, places: places)
        let transferClock = TransferClock()
        let digestLocks = KeyedLock<SHA256Digest>()
        let damageReports = DamageReports(records: metadata, clock: clock, logger: logger)
        fileService = FileService(
            context: context, digestLocks: digestLocks, transferClock: transferClock,
            damageReports: damageReports)
        finalizer = Finalizer(
            context: context, registry: registry, sessionWriter: sessionWriter,
            digestLocks: digestLocks)
        concatenator = Concatenator(
            context: context, registry: registry, sessionWriter: sessionWriter,
            fileService: fileService, finalizer: finalizer)
        garbageCollector = GarbageCollector(
            rows: metadata, bytes: bytes, clock: clock, logger: logger, digestLocks: digestLocks)
        sessions = SessionService(
            context: context, registry: registry, finalizer: finalizer,
            garbageCollector: garbageCollector)
        let resumption = FinalizeResumption(
            context: context, finalizer: finalizer, concatenator: concatenator)
        recovery = Recovery(rows: metadata, bytes: bytes, logger: logger, resumption: resumption)
        sweeper = Sweeper(
            context: context, registry: registry, garbageCollector: garbageCollector,
            resumption: resumption, concatenator: concatenator)
        fleetNode = FleetNode(
            context: context, registry: registry, leases: finalizer.leases, resumption: resumption)
        self.places = places
        self.transferClock = transferClock
        scrubber = BlobScrubber(
            context: context, fileService: fileService, damageReports: damageReports,
            digestLocks: digestLocks,
            isTransferring: { places.count > 0 || transferClock.isRecent })
        healthProbe = HealthProbe(clock: timer) {
            try await metadata.checkHealth()
            try await bytes.checkHealth()
        }
        finalizer.observeCompletions { [weak concatenator = self.concatenator] id, owner in
            concatenator?.startFinalUploads(of: id, owner: owner)
        }
    }

    /// The current time of the stores' clock.
    package var now: Timestamp { context.clock.now() }

    /// The limits and times in force.
    package var configuration: EngineConfiguration { context.configuration }

    /// Checks that both stores answer and can write. A result is reused for a second.
    package func checkHealth() async throws {
        try await translating { try await healthProbe.check() }
    }

    /// Waits until no health check is under way.
    func finishHealthCheck() async { await healthProbe.finish() }

    /// Runs an operation with a body if there is a place for one more.
    ///
    /// - Parameter isEvictable: Whether bytes count as they arrive. Such a body may be stopped, and
    ///   its client asked to come back, while other bodies wait.
    /// - Throws: `BUSY` at the limit and when stopped this way, `UNAVAILABLE` during shutdown.
    func admittingWrite<Result>(
        of body: some ByteBody, to session: SessionID?, owner: OwnerID, isEvictable: Bool,
        _ write: (WritePlace) async throws -> Result
    ) async throws -> Result {
        guard !context.isEnding else {
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

    /// Number of bodies being written now.
    package var activeWriteCount: Int { places.count }

    /// Returns memory to the system that a burst of requests has left unused.
    package func releaseMemory() async {
        context.buffers.releaseUnused()
        await context.pool.compute { ProcessMemory.release() }
    }

    /// Refuses new bodies, stops those under way and saves their bytes as partials.
    package func interruptWriters() async {
        context.drain.begin()
        for session in await registry.sessions {
            await session.interruptWriters(.draining)
        }
    }
}
