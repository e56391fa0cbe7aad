internal import KedgeFiles
internal import KedgeHash
internal import KedgeMetrics
internal import KedgeModel
internal import Logging

/// The dependencies and state that the components of the engine share.
struct EngineContext: Sendable {
    let metadata: any MetadataStore
    let bytes: any ByteStore
    let traits: ByteStoreTraits
    let configuration: EngineConfiguration
    let clock: any WallClock
    let timer: any Clock<Duration>
    let pool: BlockingPool
    let makeGenerator: @Sendable () -> AnyGenerator
    let buffers: BufferPool
    let logger: Logger
    let metrics: Metrics
    /// The metadata store, if nodes can share both its rows and the byte store; nil otherwise.
    let fleet: (any FleetMetadataStore)?
    /// Random name of this process among the nodes.
    let nodeName: String
    let space = SpaceReservations()
    let heldTokens = HeldFencingTokens()
    let busySessions = BusySessions()
    let openAreas = OpenAreaGauge()
    /// Received bytes that were read back for the hash of their file.
    let readBackBytes = ByteCounter()
    let drain = Drain()

    init(
        metadata: any MetadataStore, bytes: any ByteStore, configuration: EngineConfiguration,
        clock: any WallClock, timer: any Clock<Duration>, pool: BlockingPool,
        makeGenerator: @escaping @Sendable () -> AnyGenerator, buffers: BufferPool, logger: Logger,
        metrics: Metrics
    ) {
        self.metadata = metadata
        self.bytes = bytes
        traits = bytes.traits
        self.configuration = configuration
        self.clock = clock
        self.timer = timer
        self.pool = pool
        self.makeGenerator = makeGenerator
        self.buffers = buffers
        self.logger = logger
        self.metrics = metrics
        fleet = bytes.isShared ? metadata as? any FleetMetadataStore : nil
        var generator = makeGenerator()
        nodeName = SessionID.random(using: &generator).text
    }

    /// Returns a new random identifier.
    func makeID<Identifier: RandomIdentifier>() -> Identifier {
        var generator = makeGenerator()
        return .random(using: &generator)
    }

    /// Returns the local space that `byteCount` bytes of a file need.
    func roomNeeded(for byteCount: Int64, chunkSize: Int64) -> Int64 {
        traits.stagingNeedsFullSize ? byteCount : min(byteCount, chunkSize)
    }

    /// True once the bodies under way are being stopped.
    var isEnding: Bool { drain.isUnderWay }

    /// Returns the error for a file that is larger than allowed.
    func tooLarge() -> EngineError {
        .tooLarge(maxBytes: configuration.maxFileSize)
    }

    /// Counts a session that became a file.
    func noteCompletion(of record: SessionRecord, at now: Timestamp) {
        metrics.increment(.sessionsCompleted)
        metrics.observe(
            .uploadDurationSeconds, seconds: now.duration(since: record.createdAt) / .seconds(1))
    }

    /// The lease on a blob that the scrub takes or renews now.
    var scrubLease: WorkLease {
        let now = clock.now()
        return WorkLease(
            holder: nodeName, now: now, until: now.advanced(by: configuration.scrubLease))
    }

    /// The expiry of a session that is active now.
    var nextExpiry: Timestamp { clock.now().advanced(by: configuration.sessionLifetime) }

    /// The expiry of a session that begins now, unless it receives a byte.
    var firstExpiry: Timestamp {
        clock.now().advanced(
            by: min(configuration.emptySessionLifetime, configuration.sessionLifetime))
    }
}

extension EngineContext {
    /// Reads bytes and hashes them on the pool, one buffer at a time, until the hash covers `end`
    /// bytes.
    ///
    /// - Parameter source: Adds bytes to the empty buffer, from the number of hashed bytes on, at
    ///   most `byteCount`. Adds at least one, or throws.
    func hash(
        from hasher: SHA256Hasher, upTo end: Int64,
        reading source: (
            _ buffer: IOBuffer, _ hashedByteCount: Int64, _ byteCount: Int64
        ) async throws -> Void
    ) async throws -> SHA256Hasher {
        guard hasher.byteCount < end else { return hasher }
        let buffer = buffers.take()
        defer { buffers.give(buffer) }
        var hasher = hasher
        while hasher.byteCount < end {
            buffer.removeAll()
            try await source(buffer, hasher.byteCount, end - hasher.byteCount)
            hasher = await hash(buffer, after: hasher)
        }
        return hasher
    }

    /// Reads the stored bytes of a chunk and hashes them for the file and for the chunk at once,
    /// until the file's hash covers `end` bytes.
    ///
    /// - Parameter source: Adds bytes to the empty buffer from an offset in the file, at most
    ///   `byteCount`. Adds at least one, or throws.
    func hash(
        file: SHA256Hasher, chunk: SHA256Hasher, upTo end: Int64,
        reading source: (
            _ buffer: IOBuffer, _ offset: Int64, _ byteCount: Int64
        ) async throws -> Void
    ) async throws -> (file: SHA256Hasher, chunk: SHA256Hasher) {
        var (file, chunk) = (file, chunk)
        let buffer = buffers.take()
        defer { buffers.give(buffer) }
        while file.byteCount < end {
            buffer.removeAll()
            try await source(buffer, file.byteCount, end - file.byteCount)
            (file, chunk) = await pool.compute { [file, chunk] in
                var (file, chunk) = (file, chunk)
                SHA256Hasher.update(&file, &chunk, with: buffer.bytes)
                return (file, chunk)
            }
        }
        return (file, chunk)
    }

    /// Hashes the bytes of a buffer on the pool.
    ///
    /// - Returns: The hash after these bytes.
    func hash(_ buffer: IOBuffer, after hasher: SHA256Hasher) async -> SHA256Hasher {
        await pool.compute {
            var after = hasher
            after.update(buffer.bytes)
            return after
        }
    }
}
