internal import Foundation
internal import KedgeDisk
internal import KedgeEngine
internal import KedgeFiles
internal import KedgeIdentity
internal import KedgeMetrics
internal import KedgeMigrations
internal import KedgeModel
internal import KedgePostgres
internal import KedgeS3
internal import KedgeSQLite
internal import KedgeServer
internal import Logging

/// The open stores of a configuration.
struct Stores {
    /// A store of all rows, including those of API tokens, owners and links.
    typealias Rows = any MetadataStore & LinkStore & OwnerStore & TokenStore

    let metadata: Rows
    let bytes: any ByteStore
    let pool: BlockingPool
    /// Held if the data directory has rows but no bytes; the disk store holds its own lock.
    private let lock: DirectoryLock?
    private let limits: EngineLimits
    private let metrics: Metrics

    /// Opens the stores. A used data directory is locked first: a second process on the same data
    /// is refused before it changes anything.
    ///
    /// - Throws: ``CommandFailure`` that names the store and the cause.
    static func open(_ configuration: ServiceConfiguration) async throws -> Stores {
        try await StoreOpening(configuration).open()
    }

    init(
        metadata: Rows, bytes: any ByteStore, pool: BlockingPool,
        lock: DirectoryLock?, limits: EngineLimits, metrics: Metrics
    ) {
        self.metadata = metadata
        self.bytes = bytes
        self.pool = pool
        self.lock = lock
        self.limits = limits
        self.metrics = metrics
    }

    func makeEngine(_ configuration: EngineConfiguration, logger: Logger) throws -> TransferEngine {
        let clock: any WallClock =
            (metadata as? any FleetMetadataStore)?.databaseClock ?? SystemWallClock()
        return TransferEngine(
            metadata: metadata, bytes: bytes, configuration: try limits.applied(to: configuration),
            clock: clock, pool: pool, logger: logger, metrics: metrics)
    }

    func close() async throws {
        try await metadata.close()
        await bytes.close()
        await lock?.release()
    }
}

/// Limits that a byte store imposes on the engine.
enum EngineLimits {
    case disk
    case objects

    /// - Throws: ``CommandFailure`` if the settings cannot be met.
    func applied(to settings: EngineConfiguration) throws -> EngineConfiguration {
        guard case .objects = self else { return settings }
        var settings = settings
        let sizes = S3Store.chunkSizes
        guard settings.chunkSizes.upperBound >= sizes.lowerBound else {
            throw CommandFailure(
                "kedge: limits.maxChunkSize is below \(sizes.lowerBound), the smallest part in S3",
                exitStatus: ExitStatus.configuration)
        }
        let upper = min(settings.chunkSizes.upperBound, sizes.upperBound)
        settings.minStoredChunkSize = sizes.lowerBound
        settings.maxChunkCount = S3Store.maxChunkCount
        settings.maxFileSize = min(settings.maxFileSize, upper * Int64(S3Store.maxChunkCount))
        // Requests to a bucket cost more than syncs, so chunks are larger, up to the maximum.
        settings.defaultChunkSize = min(max(settings.defaultChunkSize, 8 << 20), upper)
        settings.chunkSizes = min(settings.chunkSizes.lowerBound, upper)...upper
        // Each checkpoint is an object, too.
        settings.checkpointInterval = .seconds(10)
        settings.checkpointByteCount = .max
        settings.minCheckpointByteCount = 256 << 10
        return settings
    }
}
