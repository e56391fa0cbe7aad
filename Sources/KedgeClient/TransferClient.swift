internal import Foundation
internal import KedgeFiles
internal import KedgeLocks
public import KedgeModel
internal import Logging

/// Moves files to and from a Kedge server, from any HTTP server, and to any server that speaks tus or IETF
/// resumable uploads, over links that fail.
///
/// A transfer is a durable record first: it is made before the first byte moves, every confirmed chunk
/// is written down at once, and whichever process runs it next goes on from there. Several clients, in
/// one process or many, may share the records; each transfer is run by one of them at a time, and all
/// of them may watch, pause, resume or cancel it.
///
/// ```swift
/// let client = try await TransferClient(
///     configuration: ClientConfiguration(serverURL: "https://files.example.org"))
/// let id = try await client.enqueueUpload(path: "video.mp4")
/// let result = try await client.run(id)
/// print(result.state, result.remoteFileID ?? "-")
/// ```
public final class TransferClient: Sendable {
    let configuration: ClientConfiguration
    let serverURL: String
    let environment: ClientEnvironment
    let store: TransferStore
    let api: ServerAPI
    let owner: LeaseOwner
    let pool: BlockingPool
    let slots: RunSlots
    let runs = ActiveRuns()

    /// Opens the records and starts the transport.
    ///
    /// - Parameter transport: Nil for ``CurlTransport``.
    /// - Throws: `USAGE` for a server URL that is none, and for a CA file that cannot be read;
    ///   `STORE_DAMAGED` when the records cannot be
    ///   used or were written by a newer kedge.
    public convenience init(
        configuration: ClientConfiguration, transport: (any HTTPTransport)? = nil
    ) async throws {
        if transport == nil, let path = configuration.caFile ?? CurlTransport.environmentCAFile,
            !FileManager.default.isReadableFile(atPath: path)
        {
            throw TransferError(
                .usage, operation: "open", resource: path,
                explanation: "The file of certificate authorities \(path) cannot be read.")
        }
        // Room for the short requests of each transfer, too.
        let connections =
            configuration.maxConcurrentTransfers
            * ((configuration.connections ?? ConcurrencyWindow.standard) + 2)
        try await self.init(
            configuration: configuration,
            transport: transport
                ?? CurlTransport(
                    maxConnectionsPerHost: max(20, connections), caFile: configuration.caFile),
            environment: .system)
    }

    /// The same with time, chance and disk given.
    package init(
        configuration: ClientConfiguration, transport: any HTTPTransport,
        environment: ClientEnvironment
    ) async throws {
        guard let serverURL = URLText.normalizedBase(configuration.serverURL) else {
            throw TransferError(
                .usage, operation: "open", explanation: "The server's address is not a URL.")
        }
        self.configuration = configuration
        self.serverURL = serverURL
        self.environment = environment
        self.pool = environment.makePool(4)
        self.api = ServerAPI(
            baseURL: serverURL, token: configuration.token, transport: transport)
        self.slots = RunSlots(count: configuration.maxConcurrentTransfers)
        self.store = try await TransferStore.open(
            path: configuration.storePath, environment: environment)
        self.owner = try await store.makeOwner()
    }

    /// Records the upload of a file, or finds the unfinished one of the same file to the same server in
    /// the same dialect and makes it ready to go on. Nothing is sent before ``run(_:)``.
    ///
    /// ```swift
    /// let client = try await TransferClient(
    ///     configuration: ClientConfiguration(serverURL: "https://example.org/files/"))
    /// let id = try await client.enqueueUpload(
    ///     path: "video.mp4", options: UploadOptions(dialect: .tus))
    /// ```
    ///
    /// - Throws: `FILE_MISSING` when there is no such file; `USAGE` when it is not a regular one, or when
    ///   an unfinished upload of the file has another session than the one that is named.
    public func enqueueUpload(
        path: String, options: UploadOptions = UploadOptions()
    ) async throws -> TransferID {
        guard options.sessionID == nil || options.dialect == .native else {
            throw TransferError(
                .usage, operation: "upload",
                explanation: "Only the native dialect goes on with a session.")
        }
        let path = LocalPath.absolute(path)
        let identity = try await UploadSource.identity(
            of: path, files: environment.files, pool: pool)
        let name = FileName.sanitized(options.fileName ?? LocalPath.name(of: path))
        var upload = UploadTransfer(
            status: makeStatus(server: server(for: options.dialect)), path: path, fileName: name,
            identity: identity,
            mimeType: options.mimeType ?? MIMEType.guess(fileName: name),
            chunkSize: ChunkLayout.chunkSize(
                preferred: max(1, options.chunkSize ?? configuration.chunkSize),
                forFileOf: identity.byteCount),
            idempotencyKey: makeID().text, dialect: options.dialect)
        upload.givenSessionID = options.sessionID
        let stored = try await store.findOrInsert(upload)
        return try await makeReady(stored.status)
    }

    /// Records a download, or finds the unfinished one of the same file to the same place and makes
    /// it ready to go on. Nothing is fetched before ``run(_:)``, except that a destination which is a
    /// directory needs the file's name from the server.
    ///
    /// - Parameter destination: Where the verified file goes; a directory keeps the remote name.
    /// - Throws: `DESTINATION_EXISTS` when another unfinished transfer writes to that place.
    public func enqueueDownload(
        _ reference: RemoteReference, to destination: String,
        options: DownloadOptions = DownloadOptions()
    ) async throws -> TransferID {
        let reference = try normalized(reference)
        let path = try await destinationPath(destination, for: reference)
        let status = makeStatus()
        var download = DownloadTransfer(
            status: status, reference: reference, destinationPath: path,
            tempPath: TempFile.path(for: path, id: status.id), overwrites: options.overwrites,
            pinnedHash: options.expectedSHA256, chunkSize: max(1, configuration.chunkSize))
        download.resumesUnverified = options.resumesUnverified
        let stored = try await store.findOrInsert(download)
        guard stored.reference == reference else {
            throw TransferError(
                .destinationExists, operation: "download", resource: path,
                explanation: "Transfer \(stored.status.id.text) writes to this destination;"
                    + " finish or cancel it first.")
        }
        return try await makeReady(stored.status)
    }

    /// Ends every run of this client, keeping what was transferred, and releases transport and
    /// records. The client cannot be used afterwards.
    public func close() async throws {
        try await suspendAll()
        await api.transport.shutdown()
        let owner = owner
        try await pool.run { owner.release() }
        try await store.close()
    }

    func makeID() -> TransferID {
        var generator = environment.makeGenerator()
        return TransferID.random(using: &generator)
    }

    /// - Parameter server: Nil for this client's own.
    func makeStatus(server: String? = nil) -> TransferStatus {
        TransferStatus(
            id: makeID(), serverURL: server ?? serverURL, createdAt: environment.now())
    }

    /// The same command again means: go on (R1).
    private func makeReady(_ status: TransferStatus) async throws -> TransferID {
        switch status.state {
        case .failed: try await retry(status.id)
        case .paused: try await resume(status.id)
        default: break
        }
        return status.id
    }

    /// A URL of the server's own file is that file: then its hash and chunk digests are known.
    private func normalized(_ reference: RemoteReference) throws -> RemoteReference {
        guard case .url(let url) = reference else { return reference }
        guard URLText.origin(of: url) != nil else {
            throw TransferError(
                .usage, operation: "download", explanation: "Only http and https can be fetched.")
        }
        let prefix = "\(serverURL)/files/"
        if url.hasPrefix(prefix), let id = FileID(url.dropFirst(prefix.count)) { return .file(id) }
        return reference
    }

    private func destinationPath(
        _ destination: String, for reference: RemoteReference
    ) async throws -> String {
        let path = LocalPath.absolute(destination)
        let files = environment.files
        let isDirectory: Bool
        let hasParent: Bool
        do {
            (isDirectory, hasParent) = try await pool.run {
                // With the dot a symbolic link to a directory is that directory.
                let parent = TempFile.directory(of: path)
                return (
                    try files.status(of: path + "/.") != nil,
                    try files.status(of: parent + "/.") != nil
                )
            }
        } catch {
            throw TransferError.reading(error, operation: "download", role: "destination")
        }
        guard hasParent, isDirectory || !destination.hasSuffix("/") else {
            throw TransferError(
                .usage, operation: "download", resource: path,
                explanation: "The folder of the destination does not exist; make it first.")
        }
        guard isDirectory else { return path }
        let name: String
        switch reference {
        case .file(let id): name = try await remote.fileMeta(id).fileName
        case .url(let url): name = URLText.lastPathComponent(of: url) ?? "download"
        }
        // The name comes from a stranger: only its last component, and nothing that steers (R130).
        return (path == "/" ? "" : path) + "/" + FileName.sanitized(name)
    }
}

/// The transfers that one client runs now, and whether it is being told to stop.
final class ActiveRuns: Sendable {
    private struct State {
        var meters: [TransferID: RateMeter] = [:]
        var isSuspending = false
    }
    private let state = Mutex(State())

    /// Claims a transfer for one run; false when it is claimed or the client is stopping.
    func begin(_ id: TransferID, meter: RateMeter) -> Bool {
        state.withLock { state in
            guard !state.isSuspending, state.meters[id] == nil else { return false }
            state.meters[id] = meter
            return true
        }
    }

    func end(_ id: TransferID) { state.withLock { _ = $0.meters.removeValue(forKey: id) } }

    func bytesPerSecond(of id: TransferID) -> Double? {
        state.withLock { $0.meters[id] }?.bytesPerSecond
    }

    func contains(_ id: TransferID) -> Bool { state.withLock { $0.meters[id] != nil } }

    var isSuspending: Bool { state.withLock { $0.isSuspending } }
    var isEmpty: Bool { state.withLock { $0.meters.isEmpty } }

    func suspend() { state.withLock { $0.isSuspending = true } }
}
