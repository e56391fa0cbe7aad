import KedgeEngine
import KedgeFiles
import KedgeModel
import KedgeS3
import KedgeTesting

/// A prefix in the bucket of a server, with the records that stores keep of it.
struct S3Environment: Sendable {
    let server: any ObjectStoreServer
    let records = MemoryRecords()
    let prefix = SessionID.random().text
    let spool: TemporaryDirectory
    var credentials: any CredentialsProvider
    /// Query parameters added to the URL of the bucket.
    var parameters = ""
    var timeout = Duration.seconds(20)
    var copyPause = Duration.seconds(600)

    init(on server: any ObjectStoreServer) throws {
        self.server = server
        spool = try TemporaryDirectory()
        credentials = FixedCredentials(
            S3Credentials(
                accessKeyID: server.accessKey, secretAccessKey: Secret(server.secretKey)))
    }

    /// Opens the store as another node at the same prefix.
    func open(
        fileSystem: any FileSystem = POSIXFileSystem(), spoolBudget: Int64? = nil
    ) throws -> S3Store {
        var configuration = try S3Configuration(
            url: "s3://\(server.bucket)/\(prefix)?endpoint=\(server.endpoint)"
                + "&spool=\(spool.path)\(parameters)", environment: [:])
        configuration.timeout = timeout
        configuration.copyPause = copyPause
        if let spoolBudget { configuration.spoolBudgetByteCount = spoolBudget }
        return S3Store(
            configuration, credentials: credentials, records: records,
            pool: BlockingPool(threadCount: 4), fileSystem: fileSystem,
            pacing: S3Pacing(sleep: { _ in try await Task.sleep(for: .milliseconds(5)) }))
    }

    /// Removes the rest of an upload, as a sweep does.
    func sweep(_ key: StagingKey, in store: S3Store, keeping location: String? = nil)
        async throws
    {
        try await store.removeStaging(
            key, state: records.stagingState(of: key), keeping: location)
    }
}

/// One server of each kind for all tests; each ends with the process.
enum SharedServers {
    static let rclone = Task { try await RcloneServer.start() }
    static let moto = Task { try await MotoServer.start() }
    static let stub = Task { try await S3Stub.start() }
    /// For one serialized suite.
    static let failing = Task {
        try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
    }

    /// The servers that store bytes without faults.
    enum Kind: String, CaseIterable, Sendable {
        case rclone
        case moto
        case stub

        var server: any ObjectStoreServer {
            get async throws {
                switch self {
                case .rclone: try await SharedServers.rclone.value
                case .moto: try await SharedServers.moto.value
                case .stub: try await SharedServers.stub.value
                }
            }
        }
    }
}
