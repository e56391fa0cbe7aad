internal import KedgeFiles
internal import KedgeModel
internal import Logging

/// The dependencies and state that the components of the engine share.
struct EngineContext: Sendable {
    let metadata: any MetadataStore
    let bytes: any ByteStore
    let configuration: EngineConfiguration
    let clock: any WallClock
    let timer: any Clock<Duration>
    let pool: BlockingPool
    let makeGenerator: @Sendable () -> AnyGenerator
    let buffers: BufferPool
    let logger: Logger
    /// The metadata store if other nodes share it; nil in a single-node deployment.
    let fleet: (any FleetMetadataStore)?
    /// Random name of this process among the nodes.
    let nodeName: String
    let space = SpaceReservations()
    let leases = HeldFencingTokens()
    let busySessions = BusySessions()
    let openAreas = OpenAreaCount()
    let drain = Drain()

    init(
        metadata: any MetadataStore, bytes: any ByteStore, configuration: EngineConfiguration,
        clock: any WallClock, timer: any Clock<Duration>, pool: BlockingPool,
        makeGenerator: @escaping @Sendable () -> AnyGenerator, buffers: BufferPool, logger: Logger
    ) {
        self.metadata = metadata
        self.bytes = bytes
        self.configuration = configuration
        self.clock = clock
        self.timer = timer
        self.pool = pool
        self.makeGenerator = makeGenerator
        self.buffers = buffers
        self.logger = logger
        fleet = bytes.isShared ? metadata as? any FleetMetadataStore : nil
        var generator = makeGenerator()
        nodeName = SessionID.random(using: &generator).text
    }

    /// Returns a new random identifier.
    func makeID<Identifier: RandomIdentifier>() -> Identifier {
        var generator = makeGenerator()
        return .random(using: &generator)
    }

    /// Returns the local space that `byteCount` bytes of a file need. A store that assembles files
    /// elsewhere needs room only for bytes in transit, at most one chunk.
    func roomNeeded(for byteCount: Int64, chunkSize: Int64) -> Int64 {
        bytes.assembles ? min(byteCount, chunkSize) : byteCount
    }

    /// True once the bodies under way are being stopped.
    var isEnding: Bool { drain.isUnderWay }

    /// Returns the error for a file that is larger than allowed.
    func tooLarge() -> EngineError {
        var error = EngineError(.fileTooLarge)
        error.maxBytes = configuration.maxFileSize
        return error
    }

    /// The expiry of a session that is active now.
    var nextExpiry: Timestamp { clock.now().advanced(by: configuration.sessionLifetime) }

    /// The expiry of a session that begins now, unless it receives a byte.
    var firstExpiry: Timestamp {
        clock.now().advanced(
            by: min(configuration.emptySessionLifetime, configuration.sessionLifetime))
    }
}
