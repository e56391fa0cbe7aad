package import KedgeEngine
package import KedgeFiles
internal import KedgeLocks
internal import KedgeModel

/// Keeps bytes in a bucket of an S3-compatible store, where any number of nodes share them.
///
/// The chunks of a session are the parts of a multipart upload; a file of one chunk is one object. What is
/// not complete yet is durable as pieces. On the node itself there is nothing but a spool without names.
package final class S3Store: ByteStore {
    /// Sizes of chunks that S3 takes as parts: at least 5 MiB apart from the last. Parts could have up to
    /// 5 GiB; the limit keeps what one failed request sends again within reason.
    package static let chunkSizes: ClosedRange<Int64> = 5 << 20...512 << 20
    /// Parts that one object may have.
    package static let maxChunkCount = 10_000

    let client: S3Client
    let records: SafeRecords
    let keys: ObjectKeys
    let budget: SpoolBudget
    let copyTrial: CopyTrial
    /// For bytes that come from the bucket and go into a spool.
    let buffers = BufferPool(bufferCapacity: 256 << 10, keptCount: 4)
    private let configuration: S3Configuration
    private let fileSystem: any FileSystem
    private let pool: BlockingPool
    private let lastProof = Mutex<ContinuousClock.Instant?>(nil)

    /// - Parameters:
    ///   - records: Where the multipart upload of each session is remembered.
    ///   - pool: Runs everything that touches the spool.
    package init(
        _ configuration: S3Configuration, credentials: any CredentialsProvider,
        records: any StagingRecords, pool: BlockingPool,
        fileSystem: any FileSystem = POSIXFileSystem(),
        clock: any WallClock = SystemWallClock(), pacing: S3Pacing = S3Pacing()
    ) {
        self.configuration = configuration
        self.records = SafeRecords(records: records)
        self.pool = pool
        self.fileSystem = fileSystem
        keys = ObjectKeys(prefix: configuration.prefix)
        budget = SpoolBudget(limit: configuration.spoolBudgetByteCount)
        client = S3Client(
            configuration, credentials: credentials, clock: clock, pacing: pacing)
        copyTrial = CopyTrial(client, keys)
    }

    package func identity() async throws -> String {
        "s3:\(configuration.endpoint.host)/\(configuration.bucket)/\(configuration.prefix)"
    }
    package var isShared: Bool { true }
    package var assembles: Bool { true }

    /// Makes nothing in the bucket: the first part does.
    package func openStaging(_ key: StagingKey) async throws -> any StagingArea {
        S3StagingArea(key, store: self)
    }

    /// Space for the spool, which is what an upload needs on this node; nobody can ask a bucket for its own.
    package func availableBytes() async throws -> Int64 {
        let free = try await onPool { [self] in
            try fileSystem.availableBytes(at: configuration.spoolDirectory)
        }
        return max(0, free - configuration.spoolReserveByteCount)
    }

    /// How long a success speaks for the store, so that frequent probes of many nodes cost little.
    private static let proofLifetime = Duration.seconds(5)
    /// Whoever asks wants to know how it is now.
    private static let probePatience = Duration.seconds(5)

    package func checkHealth() async throws {
        let isProven = lastProof.withLock { $0.map { .now - $0 < Self.proofLifetime } ?? false }
        guard !isProven else { return }
        let probe = keys.probe()
        try await seeing { [client] () async throws(S3Failure) in
            _ = try await client.putObject(
                probe, S3Body([0]), patience: Self.probePatience)
            try await client.deleteObject(probe, patience: Self.probePatience)
        }
        lastProof.withLock { $0 = .now }
    }

    package func close() async { await client.close() }

    func makeSpool() -> Spool {
        Spool(in: configuration.spoolDirectory, fileSystem: fileSystem, budget: budget)
    }

    /// True when readers are to fetch bytes from the store themselves.
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

    /// Asks the store and translates what goes wrong.
    func seeing<Value: Sendable>(
        _ work: () async throws(S3Failure) -> Value
    ) async throws(ByteStoreError) -> Value {
        do {
            return try await work()
        } catch {
            throw ByteStoreError(error)
        }
    }

    /// The same for work that is brought to its end although the calling task is cancelled: the bytes of an
    /// upload that was cut are saved just then.
    func seeingThrough<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws(ByteStoreError) -> Value {
        do {
            // Awaited here; a task of its own only because cancellation stops at it.
            return try await Task { try await work() }.value
        } catch {
            throw ByteStoreError(anything: error)
        }
    }
}

extension ByteStoreError {
    /// Translates what work in this module throws. The text is for logs.
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
