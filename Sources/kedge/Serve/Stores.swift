internal import Foundation
internal import KedgeDisk
internal import KedgeEngine
internal import KedgeFiles
internal import KedgeMigrations
internal import KedgeModel
internal import KedgeSQLite
internal import KedgeServer
internal import Logging

/// The stores that the configuration names, open.
struct Stores {
    private let metadata: any MetadataStore
    private let bytes: any ByteStore
    private let pool: BlockingPool

    /// Opens the stores, taking the data directory's lock first: a second process on the same data is
    /// refused before it touches anything.
    ///
    /// - Throws: ``CommandFailure`` saying what is wrong with the data directory or database.
    static func open(_ configuration: ServiceConfiguration) async throws -> Stores {
        // Two threads a core: while some wait for the disk, others hash.
        let pool = BlockingPool(
            threadCount: max(16, 2 * ProcessInfo.processInfo.activeProcessorCount))
        let directory = URL(fileURLWithPath: configuration.dataDirectory).standardized.path
        do {
            let bytes = try await DiskStore.open(
                directory, pool: pool, fileSystem: configuration.durability.fileSystem,
                reserveByteCount: configuration.storageReserve)
            do {
                let metadata = try await SQLiteStore.open(
                    at: directory + "/kedge.sqlite", now: SystemWallClock().now(), pool: pool,
                    durability: configuration.durability,
                    onFatal: { message in
                        // After a failed sync nothing that the database says can be trusted;
                        // the next start reads what is really on the disk.
                        StandardError.write("kedge: the database failed: \(message)\n")
                        endProcess(ExitStatus.failure)
                    })
                return Stores(metadata: metadata, bytes: bytes, pool: pool)
            } catch {
                await bytes.close()
                throw error
            }
        } catch {
            throw CommandFailure(
                "kedge: the data directory \(directory) cannot be used: "
                    + String(reflecting: error),
                exitStatus: Self.exitStatus(of: error))
        }
    }

    private static func exitStatus(of error: any Error) -> Int32 {
        switch error {
        case let error as FileError where error.code == .noSpace: ExitStatus.diskFull
        default: ExitStatus.failure
        }
    }

    func makeEngine(_ configuration: EngineConfiguration, logger: Logger) -> TransferEngine {
        TransferEngine(
            metadata: metadata, bytes: bytes, configuration: configuration, pool: pool,
            logger: logger)
    }

    func close() async throws {
        try await metadata.close()
        await bytes.close()
    }
}
