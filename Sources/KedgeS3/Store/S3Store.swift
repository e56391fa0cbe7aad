package import KedgeEngine
package import KedgeFiles
internal import KedgeLocks
package import KedgeMetrics
internal import KedgeModel

/// Stores bytes in a bucket of an S3-compatible store, shared by any number of nodes.
///
/// The chunks of a session are the parts of a multipart upload; a file of one chunk is one object.
/// Incomplete chunks are durable as pieces. The node itself only has a spool of unnamed files.
package final class S3Store: ByteStore {
    /// Chunk sizes that S3 accepts as parts: at least 5 MiB except for the last. S3 allows parts of
    /// up to 5 GiB; the lower limit bounds what a retry sends again.
    package static let chunkSizes: ClosedRange<Int64> = 5 << 20...512 << 20
    /// Largest number of parts of one object.
    package static let maxChunkCount = 10_000

    package let client: S3Client
    let records: SafeRecords
    package let keys: ObjectKeys
    package let budget: SpoolBudget
    let copyTrial: CopySupport
    /// Buffers for bytes from the bucket to a spool.
    let buffers = BufferPool(bufferCapacity: 256 << 10, keptCount: 4)
    private let configuration: S3Configuration
    private let fileSystem: any FileSystem
    private let pool: BlockingPool
    private let lastProof = Mutex<ContinuousClock.Instant?>(nil)

    /// Creates a store. Sends no request.
    ///
    /// - Parameters:
    ///   - records: Records the multipart upload of each session.
    ///   - pool: Runs all accesses to the spool.
    package init(
        _ configuration: S3Configuration, credentials: any CredentialsProvider,
        records: any StagingRecords, pool: BlockingPool,
        fileSystem: any FileSystem = POSIXFileSystem(),
        clock: any WallClock = SystemWallClock(), pacing: S3Pacing = S3Pacing(),
        metrics: Metrics = Metrics()
    ) {
        self.configuration = configuration
        self.records = SafeRecords(records: records)
        self.pool = pool
        self.fileSystem = fileSystem
        keys = ObjectKeys(prefix: configuration.prefix)
        budget = SpoolBudget(limit: configuration.spoolBudgetByteCount)
        client = S3Client(
            configuration, credentials: credentials, clock: clock, pacing: pacing,
            metrics: metrics)
        copyTrial = CopySupport(client, keys)
    }

    package func identity() async throws -> String {
        "s3:\(configuration.endpoint.host)/\(configuration.bucket)/\(configuration.prefix)"
    }
    package var isShared: Bool { true }
    package var traits: ByteStoreTraits {
        ByteStoreTraits(
            needsAssembly: true, needsChunkList: true, stagingNeedsFullSize: false,
            overwritesPartials: false, replacesSingleChunks: false, leavesLateBytes: true,
            sharesCheckpoints: true, removesInBackground: true, garbageBatchSize: 20)
    }

    /// Opens a staging area. Creates nothing in the bucket; the first part does.
    package func openStaging(_ key: StagingKey) async throws -> any StagingArea {
        S3StagingArea(key, store: self)
    }

    /// The free space of the spool, which an upload needs on this node. A bucket does not report
    /// its own.
    package func availableBytes() async throws -> Int64 {
        let free = try await onPool { [self] in
            try fileSystem.availableBytes(at: configuration.spoolDirectory)
        }
        return max(0, free - configuration.spoolReserveByteCount)
    }

    /// Time during which a success is reused, so that frequent health checks of many nodes cost
    /// little.
    private static let proofLifetime = Duration.seconds(5)
    /// A short timeout, since a health check asks for the current state.
    private static let probeTimeout = Duration.seconds(5)

    package func checkHealth() async throws {
        let isProven = lastProof.withLock { $0.map { .now - $0 < Self.proofLifetime } ?? false }
        guard !isProven else { return }
        let probe = keys.probe()
        try await seeing { [client] () async throws(S3Failure) in
            _ = try await client.putObject(
                probe, S3Body([0]), timeout: Self.probeTimeout)
            try await client.deleteObject(probe, timeout: Self.probeTimeout)
        }
        lastProof.withLock { $0 = .now }
    }

    package func close() async { await client.close() }

    func makeSpool() -> Spool {
        Spool(in: configuration.spoolDirectory, fileSystem: fileSystem, budget: budget)
    }

    /// Whether downloads are redirected to the store.
    var redirectsReaders: Bool { configuration.redirectsReaders }

    // MARK: Ways to run work

    /// Runs blocking work on the pool and translates its errors.
    func onPool<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> Value
    ) async throws(ByteStoreError) -> Value {
        do {
            return try await pool.run(work)
        } catch {
            throw ByteStoreError(anything: error)
        }
    }

    /// Runs a request and translates its failure.
    func seeing<Value: Sendable>(
        _ work: () async throws(S3Failure) -> Value
    ) async throws(ByteStoreError) -> Value {
        do {
            return try await work()
        } catch {
            throw ByteStoreError(error)
        }
    }

    /// Runs work to its end even if the calling task is cancelled: a cut upload saves its bytes at
    /// that moment. Translates its errors.
    func seeingThrough<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws(ByteStoreError) -> Value {
        do {
            // Awaited here. A task of its own only to shield the work from cancellation.
            return try await Task { try await work() }.value
        } catch {
            throw ByteStoreError(anything: error)
        }
    }
}

extension ByteStoreError {
    /// Translates any error of this module. The text is for logs.
    init(anything error: any Error) {
        switch error {
        case let error as ByteStoreError: self = error
        case let error as S3Failure: self = ByteStoreError(error)
        case let error as FileError:
            let text = error.debugDescription
            self = error.code == .noSpace ? .full(text) : .failed(text)
        default: self = .failed("\(error)")
        }
    }
}
