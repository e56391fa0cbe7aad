package import KedgeFiles
package import KedgeMetrics
package import KedgeModel
package import Logging

/// The core of the server: sessions, chunks, offsets, finalize, expiry.
///
/// Every front end (native, tus, IETF) calls it. It depends on two ports and on no protocol. It
/// makes the owners and forwards to them.
/// Acknowledged bytes are durable: bytes reach stable storage first, then the row, then the client
/// gets the response.
package final class TransferEngine: Sendable {
    let context: EngineContext
    let sessions: SessionService
    let uploads: UploadService
    let fileService: FileService
    let finalizer: Finalizer
    let concatenator: Concatenator
    let garbageCollector: GarbageCollector
    let recovery: Recovery
    let sweeper: Sweeper
    let scrubber: BlobScrubber
    let fleetNode: FleetNode
    private let healthProbe: HealthProbe

    package init(
        metadata: any MetadataStore, bytes: any ByteStore,
        configuration: EngineConfiguration = EngineConfiguration(),
        clock: any WallClock = SystemWallClock(), timer: any Clock<Duration> = .continuous,
        pool: BlockingPool,
        makeGenerator: @escaping @Sendable () -> AnyGenerator = {
            AnyGenerator(SystemRandomNumberGenerator())
        },
        logger: Logger, metrics: Metrics = Metrics()
    ) {
        context = EngineContext(
            metadata: metadata, bytes: bytes, configuration: configuration, clock: clock,
            timer: timer, pool: pool, makeGenerator: makeGenerator,
            buffers: BufferPool(
                bufferCapacity: configuration.bufferCapacity, minCapacity: 16 << 10,
                budget: configuration.bufferByteCount),
            logger: logger, metrics: metrics)
        let registry = SessionRegistry(context: context)
        let transferClock = TransferClock()
        let admission = BodyAdmission(
            drain: context.drain, places: WritePlaces(configuration), transferClock: transferClock,
            metrics: metrics)
        let sessionWriter = SessionWriter(context: context, places: admission.places)
        uploads = UploadService(
            context: context, registry: registry, sessionWriter: sessionWriter,
            admission: admission)
        let digestLocks = KeyedLock<SHA256Digest>()
        let damageReports = DamageReports(records: metadata, clock: clock, logger: logger)
        fileService = FileService(
            context: context, digestLocks: digestLocks, transferClock: transferClock,
            damageReports: damageReports)
        finalizer = Finalizer(
            context: context, registry: registry, sessionWriter: sessionWriter,
            files: fileService, digestLocks: digestLocks)
        concatenator = Self.makeConcatenator(uploads, fileService, finalizer)
        garbageCollector = GarbageCollector(
            rows: metadata, bytes: bytes, clock: clock, logger: logger, digestLocks: digestLocks)
        sessions = SessionService(
            context: context, registry: registry, finalizer: finalizer,
            garbageCollector: garbageCollector)
        let resumption = FinalizeResumption(
            context: context, rows: metadata, finalizer: finalizer, concatenator: concatenator)
        recovery = Recovery(rows: metadata, bytes: bytes, logger: logger, resumption: resumption)
        sweeper = Sweeper(
            context: context, registry: registry, garbageCollector: garbageCollector,
            resumption: resumption)
        fleetNode = FleetNode(
            context: context, registry: registry, leases: finalizer.leases, resumption: resumption)
        let outcomes = ScrubOutcomes(
            context: context, damageReports: damageReports, digestLocks: digestLocks)
        scrubber = BlobScrubber(
            context: context, fileService: fileService, outcomes: outcomes,
            isTransferring: { admission.isTransferring })
        healthProbe = HealthProbe(clock: timer) {
            try await metadata.checkHealth()
            try await bytes.checkHealth()
        }
        finalizer.observeCompletions { [weak concatenator = self.concatenator] id, owner in
            concatenator?.startFinalUploads(of: id, owner: owner)
        }
    }

    private static func makeConcatenator(
        _ uploads: UploadService, _ fileService: FileService, _ finalizer: Finalizer
    ) -> Concatenator {
        let (context, registry) = (uploads.context, uploads.registry)
        let reader = SourceReader(
            registry: registry, sessionWriter: uploads.sessionWriter, fileService: fileService,
            sessionBytes: finalizer.sessionBytes)
        let appender = SourceAppender(
            context: context, registry: registry, sessionWriter: uploads.sessionWriter,
            reader: reader)
        return Concatenator(
            context: context, finalizer: finalizer,
            copier: SourceCopier(
                context: context, registry: registry, finalizer: finalizer, appender: appender),
            uploads: UploadLookup(context: context, registry: registry, fileService: fileService))
    }

    /// The sessions in memory.
    package var registry: SessionRegistry { uploads.registry }

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

    /// The recorder of metrics that the engine was created with.
    package var metrics: Metrics { context.metrics }

    /// Number of unfinished sessions, and of what waits for its removal.
    package func rowCounts() async throws -> RowCounts {
        try await translating { try await context.metadata.rowCounts() }
    }

    /// Bytes that are free but will be used by bodies in progress.
    package var reservedByteCount: Int64 { context.space.byteCount }

    /// Size of the buffers that bodies in progress use, in bytes.
    package var lentBufferByteCount: Int { context.buffers.lentByteCount }

    /// Number of bodies being written now.
    package var activeWriteCount: Int { uploads.admission.activeWriteCount }

    /// Number of received bytes that were read back for the hash of their file, since the start.
    package var readBackByteCount: Int64 { context.readBackBytes.value }

    /// Number of bytes of files that clients were sent, since the start.
    package var downloadedByteCount: Int64 { fileService.sentBytes.value }

    /// Counts bytes of a file that a client was sent.
    package func countDownload(of byteCount: Int64) { fileService.sentBytes.add(byteCount) }

    /// Returns the bytes that are free for uploads where bytes are kept or spooled.
    package func availableByteCount() async throws -> Int64 {
        try await translating { try await context.bytes.availableBytes() }
    }

    /// Returns memory to the system that a burst of requests has left unused.
    package func releaseMemory() async {
        context.buffers.releaseUnused()
        await context.pool.compute { ProcessMemory.release() }
    }

    /// Refuses new bodies, stops those under way and saves their bytes as partials.
    package func interruptWriters() async {
        await uploads.interruptWriters()
    }
}
