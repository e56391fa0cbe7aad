internal import Foundation
internal import KedgeFiles
internal import KedgeLocks
public import KedgeModel
public import KedgeTransport
internal import Logging

/// Moves files over unreliable links: to and from a Kedge server, from any HTTP server, and to
/// servers that support tus or IETF resumable uploads.
///
/// Every transfer has a durable record, created before the first byte moves. Each confirmed chunk
/// is recorded at once, so any later process can continue the transfer. Several clients may share
/// the records, in one process or in many. One of them runs a transfer at a time; all of them may
/// observe, pause, resume or cancel it.
///
/// ```swift
/// let client = try await TransferClient(
///     configuration: ClientConfiguration(serverURL: "https://files.example.org"))
/// let id = try await client.enqueueUpload(path: "video.mp4")
/// let result = try await client.run(id)
/// print(result.state, result.remoteFileID ?? "-")
/// ```
public final class TransferClient: Sendable {
    package let configuration: ClientConfiguration
    let serverURL: String
    /// Tokens of ``ClientConfiguration/otherTokens`` by URLs in the form of ``serverURL``.
    let otherTokens: [String: String]
    /// Tokens that ``ClientConfiguration/getToken`` returns; nil without it.
    let tokens: TokenSource?
    let environment: ClientEnvironment
    package let store: TransferStore
    let api: ServerAPI
    package let owner: LeaseOwner
    let pool: BlockingPool
    let slots: RunSlots
    let runs = ActiveRuns()

    /// Opens the records and starts the transport, by default ``CurlTransport``.
    ///
    /// - Throws: `USAGE` for an invalid server URL and for an unreadable CA file; `STORE_DAMAGED`
    ///   if the records are unusable or were written by a newer kedge.
    public convenience init(
        configuration: ClientConfiguration, transport: (any HTTPTransport)? = nil
    ) async throws {
        let home = URLText.origin(of: configuration.serverURL)
        let own = home.flatMap { CurlTransport.byOrigin(configuration.originSettings)[$0] }
        let caFile = own?.caFile ?? configuration.caFile ?? CurlTransport.environmentCAFile
        if transport == nil, let path = caFile,
            !FileManager.default.isReadableFile(atPath: path)
        {
            throw TransferError(
                .usage, operation: "open", resource: path,
                explanation: "The file of certificate authorities \(path) cannot be read.")
        }
        // Leaves room for the short requests of each transfer.
        let connections =
            configuration.maxConcurrentTransfers
            * ((configuration.connections ?? ConcurrencyWindow.standard) + 2)
        var bandwidth: (@Sendable () -> BandwidthRates)?
        if let limit = configuration.bandwidth { bandwidth = { limit.rates } }
        var used =
            transport
            ?? CurlTransport(
                maxConnectionsPerHost: max(20, connections),
                bandwidth: bandwidth, proxy: configuration.proxy,
                clientCertificate: configuration.clientCertificate,
                serverURL: configuration.serverURL, caFile: configuration.caFile,
                originSettings: configuration.originSettings)
        if configuration.logger.logLevel <= .debug {
            used = LoggingTransport(inner: used, logger: configuration.logger)
        }
        try await self.init(
            configuration: configuration, transport: used, environment: .system)
    }

    /// Opens the records with a given environment: clock, randomness and file system.
    package init(
        configuration: ClientConfiguration, transport: any HTTPTransport,
        environment: ClientEnvironment
    ) async throws {
        guard let serverURL = URLText.normalizedBase(configuration.serverURL) else {
            throw TransferError(
                .usage, operation: "open",
                explanation: "The server's address is not a URL."
                    + Self.hint(for: configuration.serverURL))
        }
        self.configuration = configuration
        self.serverURL = serverURL
        self.otherTokens = Self.byBase(configuration.otherTokens)
        self.tokens = configuration.getToken.map {
            TokenSource(first: configuration.token, ask: $0)
        }
        self.environment = environment
        self.pool = environment.makePool(4)
        self.api = ServerAPI(
            baseURL: serverURL, token: configuration.token, tokens: tokens, transport: transport)
        self.slots = RunSlots(count: configuration.maxConcurrentTransfers)
        self.store = try await TransferStore.open(
            path: configuration.storePath, environment: environment)
        self.owner = try await store.makeOwner()
    }

    /// Records an upload, or finds the unfinished one of the same file to the same server in the
    /// same protocol and makes it ready to run. Nothing is sent before ``run(_:)``.
    ///
    /// ```swift
    /// let client = try await TransferClient(
    ///     configuration: ClientConfiguration(serverURL: "https://example.org/files/"))
    /// let id = try await client.enqueueUpload(
    ///     path: "video.mp4", options: UploadOptions(uploadProtocol: .tus))
    /// ```
    ///
    /// - Throws: `FILE_MISSING` if there is no such file; `USAGE` if it is not a regular file, if
    ///   an unfinished upload of it has another session than the named one, or if the protocol
    ///   cannot send the metadata.
    public func enqueueUpload(
        path: String, options: UploadOptions = UploadOptions()
    ) async throws -> TransferID {
        try Self.validate(options)
        var options = options
        if case .session(let id) = options.link?.target { options.sessionID = id }
        let path = LocalPath.absolute(path)
        let identity = try await newIdentity(of: path)
        if identity.byteCount == 0 { try await requireEmpty(path) }
        let name = FileName.sanitized(options.fileName ?? LocalPath.name(of: path))
        var upload = UploadTransfer(
            status: makeStatus(server: server(for: options)), path: path, fileName: name,
            identity: identity,
            mimeType: options.mimeType ?? MIMEType.guess(fileName: name),
            chunkSize: ChunkLayout.chunkSize(
                preferred: max(1, options.chunkSize ?? configuration.chunkSize),
                forFileOf: identity.byteCount),
            idempotencyKey: makeID().text, uploadProtocol: options.uploadProtocol)
        upload.givenSessionID = options.sessionID
        setLink(of: &upload, options.link)
        upload.metadata = options.metadata
        upload.sendsAllBytes = options.sendsAllBytes
        upload.keepsModificationTime = options.keepsModificationTime
        var stored = try await store.findOrInsert(upload)
        if !options.matchMetadata(of: stored) {
            // Its session has other metadata, which no later request changes: another path, for
            // example. Continuing would make a file that is not the requested one.
            let refusal = TransferError(
                .illegalTransition, operation: "upload", resource: path,
                explanation: "It is being uploaded with other metadata, by transfer"
                    + " \(stored.status.id); cancel that one, or wait for it.")
            // A session that the user named must not be discarded.
            guard options.sessionID == nil, stored.givenSessionID == nil,
                try await !store.hasLivingOwner(stored.status.id)
            else { throw refusal }
            try await retry(stored.status.id, fromScratch: true)
            stored = try await store.findOrInsert(upload)
            // Another process was faster.
            guard options.matchMetadata(of: stored) else { throw refusal }
        }
        return try await makeReady(stored.status)
    }

    /// Records a download, or finds the unfinished one of the same file to the same destination and
    /// makes it ready to run. Nothing is fetched before ``run(_:)``, except the file's name if the
    /// destination is a directory.
    ///
    /// The destination is the path of the verified file, or a directory in which the file keeps its
    /// remote name. A URL below one of ``ClientConfiguration/otherTokens`` belongs to that server.
    ///
    /// - Throws: `DESTINATION_EXISTS` if another unfinished transfer writes to the destination.
    public func enqueueDownload(
        _ reference: RemoteReference, to destination: String,
        options: DownloadOptions = DownloadOptions()
    ) async throws -> TransferID {
        let server = home(of: reference)
        let reference = try normalized(reference)
        let path = try await destinationPath(destination, for: reference, at: server)
        let status = makeStatus(server: server)
        var download = DownloadTransfer(
            status: status, reference: reference, destinationPath: path,
            tempPath: TempFile.path(for: path, id: status.id), overwrites: options.overwrites,
            pinnedHash: options.expectedSHA256, chunkSize: max(1, configuration.chunkSize))
        download.resumesUnverified = options.resumesUnverified
        download.keepsModificationTime = options.keepsModificationTime
        let stored = try await store.findOrInsert(download)
        guard stored.reference == reference else {
            throw TransferError(
                .destinationExists, operation: "download", resource: path,
                explanation: "Transfer \(stored.status.id.text) writes to this destination;"
                    + " finish it, or run: kedge transfers cancel \(stored.status.id.text)")
        }
        return try await makeReady(stored.status)
    }

    /// Stops all runs, keeping their progress, and releases the transport and the records. The
    /// client cannot be used afterwards.
    public func close() async throws {
        try await suspendAll()
        await api.exchange.transport.shutdown()
        let owner = owner
        try await pool.run { owner.release() }
        try await store.close()
    }

    func makeID() -> TransferID {
        var generator = environment.makeGenerator()
        return TransferID.random(using: &generator)
    }

    /// - Parameter server: Nil for this client's server.
    func makeStatus(server: String? = nil) -> TransferStatus {
        TransferStatus(
            id: makeID(), serverURL: server ?? serverURL, createdAt: environment.now())
    }

    /// Continues a failed or paused transfer: repeating the command resumes it.
    private func makeReady(_ status: TransferStatus) async throws -> TransferID {
        switch status.state {
        case .failed: try await retry(status.id)
        case .paused: try await resume(status.id)
        default: break
        }
        return status.id
    }

    /// Of several spellings of one URL, the first in the order of text counts.
    private static func byBase(_ tokens: [String: String]) -> [String: String] {
        var byBase: [String: String] = [:]
        for (url, token) in tokens.sorted(by: { $0.key < $1.key }) {
            guard let base = URLText.normalizedBase(url), byBase[base] == nil else { continue }
            byBase[base] = token
        }
        return byBase
    }

    private static func hint(for url: String) -> String {
        if url.utf8.contains(UInt8(ascii: " ")) { return " A space in it is written %20." }
        let lowercased = url.lowercased()
        guard lowercased.hasPrefix("http://") || lowercased.hasPrefix("https://") else {
            return url.contains("://")
                ? " It must begin with http:// or https://."
                : " Add http:// or https:// in front of it."
        }
        return url.utf8.allSatisfy { $0 < 0x80 }
            ? "" : " An international host name is written in its ASCII form, xn--."
    }

    /// Returns the identity of a file that may never have existed.
    func newIdentity(of path: String) async throws -> SourceIdentity {
        do {
            return try await UploadSource.identity(of: path, files: environment.files, pool: pool)
        } catch let error as TransferError where error.code == .fileMissing {
            throw TransferError(
                .fileMissing, operation: error.operation, resource: path,
                explanation: "There is no file \(path).", cause: error.cause)
        }
    }

    /// Refuses a file that has bytes although it reports none, as those of /proc do: the upload
    /// would be empty.
    private func requireEmpty(_ path: String) async throws {
        let (file, _) = try await UploadSource.openFile(
            path, files: environment.files, pool: pool)
        let hasBytes: Bool
        do {
            hasBytes = try await pool.run { () throws -> Bool in
                var byte: UInt8 = 0
                return try withUnsafeMutableBytes(of: &byte) { try file.read(into: $0, at: 0) > 0 }
            }
        } catch {
            throw TransferError.reading(error, operation: "upload", role: .source)
        }
        guard !hasBytes else {
            throw TransferError(
                .usage, operation: "upload", resource: path,
                explanation: "It reports no size although it has bytes; upload it through a pipe:"
                    + " kedge upload - --name NAME < FILE")
        }
    }

    private static func validate(_ options: UploadOptions) throws {
        func refusal(_ explanation: String) -> TransferError {
            TransferError(.usage, operation: "upload", explanation: explanation)
        }
        try validate(options.link, options)
        guard options.sessionID == nil || options.uploadProtocol == .native else {
            throw refusal("Only the native protocol can resume a session.")
        }
        switch options.uploadProtocol {
        case .native:
            guard options.metadata.keys.contains(where: { $0.hasPrefix("kedge.") }) else { return }
            throw refusal("Metadata keys that begin with \"kedge.\" are reserved.")
        case .tus:
            for key in options.metadata.keys
            where key.isEmpty || ["filename", "filetype"].contains(key)
                || !key.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ",") })
            {
                throw refusal(
                    "A key of tus metadata is ASCII without spaces and commas, and neither filename"
                        + " nor filetype; not \(key).")
            }
        case .resumableUpload:
            guard !options.metadata.isEmpty || options.keepsModificationTime else { return }
            throw refusal("The protocol \(UploadProtocol.resumableUpload) has no metadata.")
        }
    }

    /// Returns the base URL of the server that a reference belongs to: the longest known one that
    /// the URL begins with, or else this client's.
    func home(of reference: RemoteReference) -> String {
        guard case .url(let url) = reference else { return serverURL }
        return ([serverURL] + otherTokens.keys).filter { url.hasPrefix($0 + "/") }
            .max { $0.utf8.count < $1.utf8.count } ?? serverURL
    }

    /// Turns a URL of a known server's file into its id, for which hash and chunk digests are
    /// known.
    func normalized(_ reference: RemoteReference) throws -> RemoteReference {
        guard case .url(let url) = reference else { return reference }
        guard URLText.origin(of: url) != nil else {
            throw TransferError(
                .usage, operation: "download",
                explanation: "This URL cannot be downloaded." + Self.hint(for: url))
        }
        let prefix = "\(home(of: reference))/files/"
        if url.hasPrefix(prefix), let id = FileID(url.dropFirst(prefix.count)) { return .file(id) }
        return reference
    }

    private func destinationPath(
        _ destination: String, for reference: RemoteReference, at server: String
    ) async throws -> String {
        let path = LocalPath.absolute(destination)
        let files = environment.files
        let isDirectory: Bool
        let hasParent: Bool
        do {
            (isDirectory, hasParent) = try await pool.run {
                // With the dot, a symbolic link to a directory counts as that directory.
                let parent = TempFile.directory(of: path)
                return (
                    try files.status(of: path + "/.") != nil,
                    try files.status(of: parent + "/.") != nil
                )
            }
        } catch {
            throw TransferError.reading(error, operation: "download", role: .destination)
        }
        guard hasParent, isDirectory || !destination.hasSuffix("/") else {
            throw TransferError(
                .usage, operation: "download", resource: path,
                explanation: "The folder of the destination does not exist; create it first.")
        }
        guard isDirectory else { return path }
        let name: String
        switch reference {
        case .file(let id):
            name = try await RemoteAPI(api: api(of: server)).fileMeta(id).fileName
        case .url(let url):
            if let linked = reference.linkedFile {
                let api = api(for: reference, at: server)
                name = try await RemoteAPI(api: api).fileMeta(linked.id).fileName
            } else {
                name = URLText.lastPathComponent(of: url) ?? "download"
            }
        }
        // The name is untrusted: only its last component is used, without control characters.
        return (path == "/" ? "" : path) + "/" + FileName.sanitized(name)
    }
}
