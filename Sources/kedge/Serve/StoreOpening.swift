internal import Foundation
internal import KedgeDisk
internal import KedgeEngine
internal import KedgeFiles
internal import KedgeMetrics
internal import KedgeModel
internal import KedgePostgres
internal import KedgeS3
internal import KedgeSQLite
internal import KedgeServer
internal import Logging

/// Opens the stores of a configuration in turn, and closes the open ones if one fails.
struct StoreOpening {
    let configuration: ServiceConfiguration
    private let directory: String
    private let pool: BlockingPool
    private let metrics: Metrics

    init(_ configuration: ServiceConfiguration) {
        self.configuration = configuration
        directory = URL(fileURLWithPath: configuration.dataDirectory).standardized.path
        metrics = Metrics(onOverflow: { name in
            Announcement.write(
                "the metric \(name.definition.name) has too many label values", .warning,
                in: configuration)
        })
        // Two threads per core: some hash while others wait for the disk.
        pool = BlockingPool(
            threadCount: max(16, 2 * ProcessInfo.processInfo.activeProcessorCount))
    }

    /// - Throws: ``CommandFailure``.
    func open() async throws -> Stores {
        if configuration.usesDataDirectory { try await requireSafeDirectory() }
        return switch configuration.bytes {
        case .disk: try await openOverDisk()
        case .s3(let url): try await openOverObjects(url)
        }
    }

    /// Checks the data directory before anything is changed.
    private func requireSafeDirectory() async throws {
        do {
            try await pool.run { [directory, configuration] in
                try configuration.directoryDemands.check(directory, in: POSIXFileSystem())
            }
        } catch let violation as DirectoryRequirements.Violation {
            throw CommandFailure(
                "kedge: the data directory \(directory) \(Self.sentence(violation, directory))",
                exitStatus: ExitStatus.configuration)
        } catch {
            throw CommandFailure(
                "kedge: the data directory \(directory) cannot be used: \(Self.reason(error))",
                exitStatus: Self.exitStatus(of: error))
        }
    }

    private static func sentence(
        _ violation: DirectoryRequirements.Violation, _ directory: String
    ) -> String {
        switch violation {
        case .writableByOthers(let permissions):
            let mode = String(permissions, radix: 8)
            return
                "is writable by others than its owner (mode \(mode)), who could replace the stored "
                + "data. Run: chmod go-w \(ShellText.quoted(directory)). If this is intended, set "
                + "storage.allow to shared."
        case .onNetwork(let name):
            return
                "is on a network file system (\(name)), whose locks and syncs may not be "
                + "reliable. Use a local disk. If this is intended, set storage.allow to network."
        }
    }

    private func openOverDisk() async throws -> Stores {
        let bytes = try await naming("the data directory \(directory)") {
            try await DiskStore.open(
                directory, pool: pool, fileSystem: timedFileSystem,
                reserveByteCount: configuration.storageReserve)
        }
        return try await orElse(await bytes.close()) {
            let metadata = try await openMetadata()
            // An error of closing is dropped: the one that prevents the start is more useful.
            return try await orElse(try? await metadata.close()) {
                // SQLite rows in the same directory need no identity of the bytes.
                let identity =
                    configuration.metadata == .sqlite
                    ? CheckOpening.identityBesideRows : try await bytes.identity()
                try await bind(metadata, to: identity)
                return Stores(
                    metadata: metadata, bytes: bytes, pool: pool, lock: nil, limits: .disk,
                    metrics: metrics)
            }
        }
    }

    private func openOverObjects(_ url: String) async throws -> Stores {
        let environment = ProcessInfo.processInfo.environment
        var settings = try await naming("bytes", exitStatus: ExitStatus.configuration) {
            try S3Configuration(url: url, environment: environment)
        }
        settings.spoolReserveByteCount = configuration.storageReserve
        // With Postgres, the data directory is not used.
        let lock =
            configuration.metadata == .sqlite
            ? try await naming("the data directory \(directory)") {
                try await DirectoryLock.take(
                    directory, pool: pool, fileSystem: configuration.durability.fileSystem)
            } : nil
        return try await orElse(await lock?.release()) {
            let metadata = try await openMetadata()
            // An error of closing is dropped: the one that prevents the start is more useful.
            return try await orElse(try? await metadata.close()) {
                let bytes = S3Store(
                    settings,
                    credentials: CredentialsChain.standard(
                        environment: environment, region: settings.region, pool: pool),
                    records: metadata, pool: pool, metrics: metrics)
                try await bind(metadata, to: try await bytes.identity())
                return Stores(
                    metadata: metadata, bytes: bytes, pool: pool, lock: lock, limits: .objects,
                    metrics: metrics)
            }
        }
    }

    private var timedFileSystem: any FileSystem {
        configuration.durability.fileSystem.timingSyncs { [metrics] start in
            metrics.observe(.syncSeconds, since: start)
        }
    }

    private func openMetadata() async throws -> Stores.Rows {
        switch configuration.metadata {
        case .sqlite:
            return try await naming("the data directory \(directory)") {
                try await SQLiteStore.open(
                    at: directory + "/kedge.sqlite", now: SystemWallClock().now(), pool: pool,
                    durability: configuration.durability, metrics: metrics,
                    onFatal: { message in
                        // After a failed sync, reads of the database cannot be trusted. The next
                        // start reads what is really on the disk.
                        Announcement.write(
                            "the database failed: \(message)", .critical, in: configuration)
                        endProcess(ExitStatus.failure)
                    })
            }
        case .postgres(let url):
            let waiting = Task {
                try await Task.sleep(for: .seconds(1))
                Announcement.write(
                    "waiting for the database at \(configuration.metadata)", .notice,
                    in: configuration)
            }
            defer { waiting.cancel() }
            return try await naming("the database \(configuration.metadata)") {
                try await PostgresStore.open(url: url, metrics: metrics) { message in
                    Announcement.write(
                        "the database: \(message)", .warning, in: configuration)
                }
            }
        }
    }

    /// Binds the rows to their bytes: with other bytes, they would promise missing data.
    private func bind(_ metadata: any MetadataStore, to identity: String) async throws {
        do {
            try await metadata.bind(toBytesAt: identity)
        } catch MetadataError.foreignBytes(let place) {
            throw CommandFailure(
                "kedge: the rows belong to bytes in \"\(place)\", not in \"\(identity)\". Nodes "
                    + "that share rows must share bytes, and rows cannot be used with other bytes.",
                exitStatus: ExitStatus.configuration)
        }
    }

    /// Runs the rest of the opening; cleans up if it fails.
    private func orElse<Result>(
        _ cleanUp: @autoclosure () async -> Void?, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch {
            _ = await cleanUp()
            throw error
        }
    }

    private func naming<Result>(
        _ place: String, exitStatus: Int32? = nil, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch {
            throw CommandFailure(
                "kedge: \(place) cannot be used: \(Self.reason(error))",
                exitStatus: exitStatus ?? Self.exitStatus(of: error))
        }
    }

    /// Returns the cause without names of types.
    private static func reason(_ error: any Error) -> String {
        switch error {
        case MetadataError.unavailable(let text), MetadataError.failed(let text): text
        default: "\(error)"
        }
    }

    private static func exitStatus(of error: any Error) -> Int32 {
        switch error {
        case let error as FileError where error.code == .noSpace: ExitStatus.diskFull
        case DiskStoreError.unusable(let error) where error.code == .noSpace: ExitStatus.diskFull
        case is UntestedSQLiteError: ExitStatus.configuration
        default: ExitStatus.failure
        }
    }
}
