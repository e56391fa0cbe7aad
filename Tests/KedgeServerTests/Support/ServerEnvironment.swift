import KedgeDisk
import KedgeEngine
import KedgeFiles
import KedgeIdentity
import KedgeModel
import KedgeSQLite
import KedgeSecrets
import KedgeServer
import KedgeTesting
import Logging
import ServiceLifecycle
import Testing

/// A data directory with the settings, the clock and the disk of the servers that run on it, one
/// after the other.
final class ServerEnvironment: Sendable {
    let directory: TemporaryDirectory
    let clock = ManualClock()
    let disk = FaultyFileSystem()
    let log = CapturedLog()
    let masterKey = MasterKey.generate()
    let configuration: ServiceConfiguration
    /// Changes of tokens by other nodes; nil for one node.
    private let identityChanges: AsyncStream<IdentityChange>?
    let bearers: (any BearerVerifier)?

    /// Defaults, except a free port, chunks of any size, places for the bodies of all concurrent
    /// tests, and a short drain.
    init(
        identityChanges: AsyncStream<IdentityChange>? = nil,
        bearers: (any BearerVerifier)? = nil,
        _ configure: (inout ServiceConfiguration) -> Void = { _ in }
    ) async throws {
        self.identityChanges = identityChanges
        self.bearers = bearers
        directory = try TemporaryDirectory()
        let loader = try await ConfigurationLoader(
            flags: [
                .port: "0", .data: directory.path + "/data", .minChunkSize: "1",
                .storageReserve: "0", .drainTimeout: "1", .maxConcurrentWrites: "10000",
            ], environment: [:], file: nil)
        var configuration = try loader.configuration()
        configuration.engine.chunkSizeMultiple = 1
        configure(&configuration)
        self.configuration = configuration
    }

    /// Starts a server as `kedge serve` does: stores, recovery, HTTP.
    func start() async throws -> RunningServer {
        let pool = BlockingPool(threadCount: 4)
        let bytes = try await DiskStore.open(
            configuration.dataDirectory, pool: pool, fileSystem: disk,
            reserveByteCount: configuration.storageReserve)
        let metadata = try await SQLiteStore.open(
            at: configuration.dataDirectory + "/kedge.sqlite", now: clock.now(), pool: pool
        ) { Issue.record("the database failed for good: \($0)") }
        let logger = log.logger()
        let engine = TransferEngine(
            metadata: metadata, bytes: bytes, configuration: configuration.engine, clock: clock,
            pool: pool, logger: logger)
        try await engine.recover()
        var tokens: any TokenStore = metadata
        if let identityChanges {
            tokens = NotifyingTokens(inner: metadata, changes: identityChanges)
        }
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let signingKeys = SigningKeys(
            links: metadata, tokens: metadata, masters: MasterKeys(masterKey),
            now: { [clock] in clock.now() })
        let service = try KedgeService(
            engine: engine, configuration: configuration, tokens: tokens, owners: metadata,
            signingKeys: signingKeys, bearers: bearers, logger: logger
        ) { port.yield($0) }
        var settings = ServiceGroupConfiguration(
            services: [
                .init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)
            ], logger: logger)
        settings.maximumGracefulShutdownDuration = configuration.drainTimeout + .seconds(15)
        let group = ServiceGroup(configuration: settings)
        // Awaited in `stop()`, which every user of a server calls.
        let run = Task {
            defer { port.finish() }
            try await group.run()
        }
        guard let number = await ports.first(where: { _ in true }) else {
            try await run.value
            throw ClientConnection.Failure.refused
        }
        return RunningServer(
            port: number, engine: engine, tokens: metadata, service: service, owners: metadata,
            fixture: self, group: group, task: run)
    }

    /// Lends a running server and stops it afterwards.
    @discardableResult
    func withServer<Result: Sendable>(
        _ body: (RunningServer) async throws -> Result
    ) async throws -> Result {
        let server = try await start()
        let result: Result
        do {
            result = try await body(server)
        } catch {
            try await server.stop()
            throw error
        }
        try await server.stop()
        return result
    }
}

/// A server that accepts connections.
struct RunningServer: Sendable {
    let port: Int
    let engine: TransferEngine
    let tokens: any TokenStore
    let service: KedgeService
    let owners: any OwnerStore
    let fixture: ServerEnvironment
    fileprivate let group: ServiceGroup
    fileprivate let task: Task<Void, any Error>

    /// Begins a graceful shutdown, as SIGTERM does.
    func beginStopping() async { await group.triggerGracefulShutdown() }

    /// Returns when the service has ended by itself; its stores stay open.
    func untilEnded() async throws { try await task.value }

    /// Stops the service and closes its stores, as the process does at its end.
    func stop() async throws {
        await beginStopping()
        try await untilEnded()
        try await engine.close()
    }

    func connect() async throws -> ClientConnection { try await ClientConnection(port: port) }

    /// Asks on a connection of its own.
    func ask(_ request: HTTPRequestBytes) async throws -> HTTPAnswer {
        try await connect().ask(request)
    }

    func get(_ target: String, _ fields: [(String, String)] = []) async throws -> HTTPAnswer {
        try await ask(HTTPRequestBytes("GET", target, fields))
    }
}

/// Lends a server to one test.
@discardableResult
func withServer<Result: Sendable>(
    _ configure: (inout ServiceConfiguration) -> Void = { _ in },
    _ body: (RunningServer) async throws -> Result
) async throws -> Result {
    try await ServerEnvironment(configure).withServer(body)
}
