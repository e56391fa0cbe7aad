internal import KedgeFiles
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
    let busySessions = BusySessions()
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

    /// Space that so many bytes of a file need here. Where bytes go on from here to another place, only
    /// those on their way do.
    func roomNeeded(for byteCount: Int64, chunkSize: Int64) -> Int64 {
        bytes.assembles ? min(byteCount, chunkSize) : byteCount
    }

    /// When a session that is active now will expire.
    var nextExpiry: Timestamp { clock.now().advanced(by: configuration.sessionLifetime) }

    /// When a session that begins now will expire, unless it gets a byte.
    var firstExpiry: Timestamp {
        clock.now().advanced(
            by: min(configuration.emptySessionLifetime, configuration.sessionLifetime))
    }
}
