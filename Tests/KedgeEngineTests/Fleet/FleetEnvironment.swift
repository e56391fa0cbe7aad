import KedgeEngine
import KedgeFiles
import KedgeModel
import KedgePostgres
import KedgeS3
import KedgeTesting
import Logging

/// One database and one part of a bucket, for any number of nodes.
struct FleetEnvironment: Sendable {
    static let server = Task { try await S3Stub.start(minPartByteCount: 1) }

    let database: PostgresServer
    let databaseURL: String
    let bucket: S3Stub
    private let prefix = SessionID.random().text
    private let spool: TemporaryDirectory
    private let pool = BlockingPool(threadCount: 8)

    init() async throws {
        database = try await PostgresServer.shared()
        databaseURL = try await database.makeDatabase()
        bucket = try await Self.server.value
        spool = try TemporaryDirectory()
    }

    /// Starts a node.
    func start(
        _ configure: (inout EngineConfiguration) -> Void = { _ in }
    ) async throws -> TestNode {
        var postgres = PostgresConfiguration()
        postgres.timeout = .seconds(20)
        let metadata = try await PostgresStore.open(
            url: databaseURL + "?pool_size=3", configuration: postgres, onNotice: { _ in })
        let settings = try S3Configuration(
            url: "s3://\(bucket.bucket)/\(prefix)?endpoint=\(bucket.endpoint)&spool=\(spool.path)",
            environment: [:])
        let bytes = S3Store(
            settings,
            credentials: FixedCredentials(
                S3Credentials(
                    accessKeyID: bucket.accessKey, secretAccessKey: Secret(bucket.secretKey))),
            records: metadata, pool: pool)
        try await metadata.bind(toBytesAt: try await bytes.identity())
        var configuration = EngineConfiguration.small
        configuration.writerLease = .seconds(2)
        configuration.finalizeLease = .seconds(2)
        configuration.finalizeTimeout = .seconds(20)
        configure(&configuration)
        let engine = TransferEngine(
            metadata: metadata, bytes: bytes, configuration: configuration,
            clock: metadata.databaseClock, pool: pool,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        return TestNode(
            engine: engine, metadata: metadata, bytes: bytes,
            // The node's end cancels it.
            fleetTask: Task { await engine.runInFleet() })
    }

    /// Sweeps until nothing is left, and returns false when that takes too long. A removal that a
    /// request began may still be under way.
    func sweepUntilEmpty(with nodes: [TestNode]) async throws -> Bool {
        try await eventually(within: .seconds(20)) {
            for node in nodes { try await node.engine.sweep() }
            return try await leftovers().isEmpty
        }
    }

    /// Keys of the objects and multipart uploads of this environment in the bucket.
    func leftovers() async throws -> [String] {
        let state = try await bucket.state()
        return state.objects.map(\.key).filter { $0.hasPrefix(prefix) }
            + state.uploads.map(\.key).filter { $0.hasPrefix(prefix) }
    }
}

/// One process of a fleet.
struct TestNode: EngineHolder {
    let engine: TransferEngine
    let metadata: PostgresStore
    let bytes: S3Store
    let fleetTask: Task<Void, Never>

    /// Takes the stores away from under the engine, as the end of a process does: nothing more is
    /// saved, and no lease is released.
    func kill() async throws {
        fleetTask.cancel()
        try await metadata.close()
        await bytes.close()
        await engine.interruptWriters()
    }

    func stop() async throws {
        fleetTask.cancel()
        try await engine.close()
    }

    /// Repeats finalize until the file is there.
    func finishWaiting(_ upload: Upload) async throws -> FileRecord {
        while true {
            let outcome = try await engine.finalize(upload.id, owner: upload.owner)
            if case .completed(let file) = outcome { return file }
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}

/// Runs the body with `count` nodes in a new environment, and stops them after a success.
func withNodes(
    _ count: Int, _ configure: (inout EngineConfiguration) -> Void = { _ in },
    _ body: (FleetEnvironment, [TestNode]) async throws -> Void
) async throws {
    let fixture = try await FleetEnvironment()
    var nodes: [TestNode] = []
    for _ in 0..<count { nodes.append(try await fixture.start(configure)) }
    try await body(fixture, nodes)
    for node in nodes { try await node.stop() }
}
