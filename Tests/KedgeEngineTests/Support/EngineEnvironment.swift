import Glibc
import KedgeDisk
import KedgeEngine
import KedgeFiles
import KedgeHash
import KedgeModel
import KedgeSQLite
import KedgeTesting
import Testing

extension EngineConfiguration {
    /// Small sizes, so that a few hundred bytes are many writes: chunks of 1000 bytes, gathered in
    /// buffers of 256.
    static let small: EngineConfiguration = {
        var configuration = EngineConfiguration()
        configuration.chunkSizes = 1...4096
        configuration.chunkSizeMultiple = 1
        configuration.defaultChunkSize = 1000
        configuration.maxFileSize = 1_000_000
        configuration.bufferCapacity = 256
        // The clock stands still.
        configuration.hashStepLimits.timeout = .zero
        configuration.takeoverGrace = .zero
        return configuration
    }()
}

/// An environment for an engine over SQLite and a disk, with a clock and a disk that a test
/// controls, and the engine's log.
final class EngineEnvironment: Sendable {
    let directory: TemporaryDirectory
    let clock = ManualClock()
    let timer = ManualTimer()
    let disk = TestDisk()
    let log = CapturedLog()
    private let configuration: EngineConfiguration
    private let pool: BlockingPool

    init(
        pool: BlockingPool = BlockingPool(threadCount: 4),
        _ configure: (inout EngineConfiguration) -> Void = { _ in }
    ) throws {
        self.pool = pool
        directory = try TemporaryDirectory()
        var configuration = EngineConfiguration.small
        configure(&configuration)
        self.configuration = configuration
    }

    var dataPath: String { directory.path + "/data" }

    /// Opens the environment's stores, recovers, and starts an engine over them. A call after
    /// ``Node/kill()`` is a restart.
    ///
    /// - Parameters:
    ///   - timer: The environment's when nil.
    ///   - configure: Changes the configuration for this process.
    func start(
        timer: (any Clock<Duration>)? = nil,
        _ configure: (inout EngineConfiguration) -> Void = { _ in }
    ) async throws -> Node {
        var configuration = configuration
        configure(&configuration)
        let bytes = try await DiskStore.open(
            dataPath, pool: pool, fileSystem: disk, reserveByteCount: 0)
        let database = try await SQLiteStore.open(
            at: directory.path + "/kedge.sqlite", now: clock.now(), pool: pool
        ) { Issue.record("the database failed for good: \($0)") }
        let metadata = HookedMetadata(database)
        let engine = TransferEngine(
            metadata: metadata, bytes: bytes, configuration: configuration, clock: clock,
            timer: timer ?? self.timer, pool: pool, logger: log.logger())
        try await engine.recover()
        return Node(engine: engine, metadata: metadata, bytes: bytes, fixture: self)
    }
}

/// A running engine with its stores.
struct Node: EngineHolder {
    let engine: TransferEngine
    let metadata: HookedMetadata
    let bytes: any LocalByteStore
    let fixture: EngineEnvironment

    /// Takes the stores away from under the engine, as the end of a process does: nothing more is
    /// saved.
    func kill() async throws {
        try await metadata.close()
        await bytes.close()
    }

    /// Ends this process and starts another in the same environment.
    func restart() async throws -> Node {
        try await kill()
        return try await fixture.start()
    }
}

extension TemporaryDirectory {
    /// Number of open descriptors of files in a part of the data directory.
    func openDescriptorCount(below part: String) throws -> Int {
        let prefix = "\(path)/data/\(part)/"
        return try POSIXFileSystem().list("/proc/self/fd").filter { name in
            var target = [CChar](repeating: 0, count: 4096)
            let count = readlink("/proc/self/fd/\(name)", &target, target.count)
            let bytes = target.prefix(max(0, count)).map { UInt8(bitPattern: $0) }
            return String(decoding: bytes, as: UTF8.self).hasPrefix(prefix)
        }.count
    }
}
