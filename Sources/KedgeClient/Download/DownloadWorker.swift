internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel
internal import Logging

/// Runs one download from its recorded state to `completed`.
///
/// Bytes are written to a temporary file beside the destination. A chunk is recorded only after its
/// bytes are on stable storage. The file is renamed only once it has the expected SHA-256.
actor DownloadWorker {
    /// Limit of restarts in one run for reasons that may resolve themselves.
    private static let maxRestartCount = 5

    let context: WorkerContext
    let fetcher: FileFetcher
    var download: DownloadTransfer
    /// The server's metadata, as reported in this run.
    var remote = RemoteFile(url: "", acceptsRanges: false)
    /// Chunks that are complete and durable.
    var confirmed: ChunkSet
    var window = ConcurrencyWindow(
        wish: nil, serverLimit: nil, bufferByteCount: 1, budgetByteCount: 8)
    /// Chunks that are complete but not synced yet.
    var unsynced: [ConfirmedChunk] = []
    /// Partials of unfinished chunks that wait for a sync, by chunk index.
    var unsyncedPartials: [Int: SavedHash] = [:]
    /// Partials that the running sync covers, by chunk index.
    var syncingPartials: [Int: SavedHash] = [:]
    /// Partials left by earlier runs, by chunk index.
    private(set) var partials: [Int: DownloadPartial] = [:]
    var isSyncing = false
    /// The sync error after which this run confirms no further bytes.
    var syncFailure: (any Error)?
    /// Whether to fetch the whole file in one request, because the server does not serve ranges or
    /// no strong validator ties them together.
    var isSequential = false
    /// The temporary file, open and therefore locked for the length of a run.
    private(set) var temp: TempFile?
    /// The file's hash while its chunks are fetched.
    private(set) var wholeFile: FileHasher?
    let buffers: BufferPool

    init(_ download: DownloadTransfer, context: WorkerContext) {
        self.context = context
        self.fetcher = FileFetcher(api: context.api)
        self.download = download
        self.confirmed = download.downloadedChunks
        let capacity = min(1 << 20, context.environment.checkpointLimits.noteByteCount)
        self.buffers = BufferPool(bufferCapacity: Int(capacity), keptCount: 8)
    }

    /// Reads the record again.
    func reload() async throws {
        download = try await context.store.download(context.lease.id)
        confirmed = download.downloadedChunks
        let found = try await context.store.partials(of: context.lease.id)
        partials = Dictionary(uniqueKeysWithValues: found.map { ($0.index, $0) })
    }

    var files: any FileSystem { context.environment.files }

    /// Runs the download to its end.
    ///
    /// - Throws: ``RequestFailure`` or `TransferError` to show to the user;
    ///   ``RunInterruption``; `CancellationError`.
    func run() async throws {
        defer { closeTempFile() }
        var restartCount = 0
        while true {
            do {
                if try await recoverPromotion() { return }
                try await inspect()
                if try await acceptExistingDestination() { return }
                try await fetchVerifyPromote()
                return
            } catch let restart as DownloadRestart {
                restartCount += 1
                // These may belong to the abandoned version.
                (unsynced, unsyncedPartials, syncingPartials) = ([], [:], [:])
                guard restartCount <= Self.maxRestartCount else { throw restart.error }
                if case .remoteChanged(let answer) = restart.reason {
                    // Recorded here because several chunks may notice the same change.
                    let count = try await context.store.recordRemoteChange(
                        context.lease, answer: answer)
                    guard count <= 1 else { throw restart.error }
                }
                context.logger.notice(
                    "download restarted",
                    metadata: [
                        "transfer": "\(context.lease.id)", "code": "\(restart.error.code.rawValue)",
                    ])
                try await reload()
            }
        }
    }

    /// Requests the file's metadata and compares it with the record.
    private func inspect() async throws {
        let (fetcher, reference) = (fetcher, download.reference)
        let answered = try await context.coordinator.retrying {
            try await fetcher.inspect(reference)
        }
        try await reload()
        remote = answered.value
        if isOtherVersion(remote) { throw Self.remoteChanged(answered.answer) }
        isSequential =
            isSequential || !remote.hasRanges || remote.validator.isWeak && !mayGoOnWeakly
        if isSequential, download.tempInode != nil { try await reportRestart(after: nil) }
        // Uses the server's chunk size, so that its digests fit; otherwise the recorded one.
        let chunkSize = ChunkLayout.chunkSize(
            preferred: remote.chunkSize ?? download.chunkSize, forFileOf: remote.byteCount)
        let restarts = chunkSize != download.chunkSize || isSequential || isUnproven
        // Bytes received under a weak validator stay in doubt.
        if hasProgress, !restarts, let known = download.validator, known.isWeak {
            remote.validator = remote.validator.weakened
        }
        try await context.store.setRemote(
            remote, chunkSize: chunkSize, restarts: restarts, answer: answered.answer,
            of: context.lease)
        try await reload()
    }

    private func fetchVerifyPromote() async throws {
        let temp: TempFile
        let digest: SHA256Digest
        let size: Int64
        if isSequential {
            (temp, digest, size) = try await fetchWhole()
        } else {
            temp = try await openTempFile()
            // Starts at the first byte, without a saved state: bytes written by an earlier run are
            // read back as they are now. Bytes of this run are hashed in order when written.
            let wholeFile = FileHasher(
                file: temp.file, saved: nil, environment: context.environment)
            self.wholeFile = wholeFile
            defer { wholeFile.stop() }
            try await fetchMissingChunks(into: temp, hash: wholeFile)
            size = download.expectedSize ?? 0
            digest = try await wholeFileDigest(wholeFile, size: size)
        }
        try await verify(digest, temp: temp)
        try await promote(temp, digest: digest, size: size)
    }

    /// Opens the temporary file of an earlier run or creates a new one. Without the old file, no
    /// confirmed chunk counts.
    private func openTempFile() async throws -> TempFile {
        let (files, path) = (files, download.tempPath)
        let size = download.expectedSize ?? 0
        if let temp {
            // Opening it again would fail: this process holds its lock.
            let now = try await context.onDisk("look at", .downloadFolder) {
                try temp.file.status()
            }
            if now.inode == download.tempInode, now.byteCount == size { return temp }
        } else if let inode = download.tempInode {
            let confirmed = confirmedByteCount
            let existing = try await context.onDisk("open", .downloadFolder) {
                let temp = try TempFile.reopen(path, inode: inode, size: size, files: files)
                if let temp {
                    // Unconfirmed bytes already have space allocated on the disk.
                    let held = max(confirmed, try temp.file.status().allocatedByteCount)
                    try TempFile.requireSpace(
                        max(0, size - held), at: TempFile.directory(of: path), files: files)
                }
                return temp
            }
            if let existing {
                temp = existing
                return existing
            }
        }
        return try await makeTempFile(size: size)
    }

    func makeTempFile(size: Int64) async throws -> TempFile {
        let (files, old) = (files, download.tempPath)
        var generator = context.environment.makeGenerator()
        let path = TempFile.path(
            for: download.destinationPath, id: context.lease.id,
            mark: "-\(TransferID.random(using: &generator).text.prefix(8))")
        // Removes this transfer's file from an interrupted run, durably before the record forgets
        // its name: no other process would remove it. The file stays open, and so locked, until
        // then. If this process is suspended here, a new owner must not write to a file that this
        // process removes when it wakes.
        try await context.onDisk("remove", .downloadFolder) {
            try files.remove(old)
            // Also when the file is missing: an earlier run may have stopped after the removal.
            try files.syncDirectoryAnew(TempFile.directory(of: old), scratch: old)
        }
        closeTempFile()
        try await context.store.prepareTempFile(at: path, of: context.lease)
        let made = try await context.onDisk("create", .downloadFolder) {
            try TempFile.create(path, size: size, files: files)
        }
        temp = made
        try await context.store.attachTempFile(inode: made.inode, of: context.lease)
        try await reload()
        return made
    }

    /// Closes the temporary file. Bytes that were not synced do not count anyway.
    func closeTempFile() {
        // A failed close loses only bytes that do not count.
        try? temp?.file.close()
        temp = nil
    }

    private var confirmedByteCount: Int64 {
        guard let layout = download.layout else { return 0 }
        return layout.byteCount(of: confirmed)
    }
}
