internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel
internal import Logging

/// Runs one download from wherever it stands to `completed`.
///
/// Bytes gather in a temporary file beside the destination. A chunk counts when its bytes are on
/// stable storage, in that order (R92); the file gets its name when the whole of it has the expected
/// SHA-256 (R96).
actor DownloadWorker {
    /// Times that one run begins anew for reasons that cure themselves.
    private static let maxRestartCount = 5

    let context: WorkerContext
    let fetcher: FileFetcher
    var download: DownloadTransfer
    /// What the server said in this run.
    var remote = RemoteFile(url: "", acceptsRanges: false)
    /// Chunks that are complete and durable.
    var confirmed: ChunkSet
    var window = ConcurrencyWindow(
        wish: nil, serverLimit: nil, bufferByteCount: 1, budgetByteCount: 8)
    /// Chunks that are complete but not synced yet.
    var unsynced: [ConfirmedChunk] = []
    /// What there is of unfinished chunks in the file, as far as it waits for a sync.
    var unsyncedPartials: [Int: SavedHash] = [:]
    /// Those of them that the sync under way covers.
    var syncingPartials: [Int: SavedHash] = [:]
    /// What earlier runs left of unfinished chunks.
    private(set) var partials: [Int: DownloadPartial] = [:]
    var isSyncing = false
    /// Why the temporary file's bytes cannot be made durable in this run.
    var syncFailure: (any Error)?
    /// The server turned out to ignore ranges: fetch the whole file in one go.
    var isSequential = false
    /// Open, and so locked, for the length of a run.
    private(set) var temp: TempFile?
    /// The hash of the file while its chunks are fetched.
    private(set) var wholeFile: PrefixHash?
    let buffers: BufferPool

    init(_ download: DownloadTransfer, context: WorkerContext) {
        self.context = context
        self.fetcher = FileFetcher(api: context.api)
        self.download = download
        self.confirmed = download.downloadedChunks
        let capacity = min(1 << 20, context.environment.partialLimits.noteByteCount)
        self.buffers = BufferPool(bufferCapacity: Int(capacity), keptCount: 8)
    }

    /// Reads the record anew.
    func reload() async throws {
        download = try await context.store.download(context.lease.id)
        confirmed = download.downloadedChunks
        let found = try await context.store.partials(of: context.lease.id)
        partials = Dictionary(uniqueKeysWithValues: found.map { ($0.index, $0) })
    }

    var files: any FileSystem { context.environment.files }

    /// Runs to the end.
    ///
    /// - Throws: ``RequestFailure`` or `TransferError` for what must be shown; ``OutOfPatience``;
    ///   ``LeaseLost``; `CancellationError`.
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
                // They may be of the version that is given up.
                (unsynced, unsyncedPartials, syncingPartials) = ([], [:], [:])
                guard restartCount <= Self.maxRestartCount else { throw restart.error }
                if case .remoteChanged(let answer) = restart.reason {
                    // Here and not where it was noticed: several chunks may notice one change.
                    let count = try await context.store.recordRemoteChange(
                        context.lease, answer: answer)
                    guard count <= 1 else { throw restart.error }
                }
                context.logger.notice(
                    "download starts over",
                    metadata: [
                        "transfer": "\(context.lease.id)", "code": "\(restart.error.code.rawValue)",
                    ])
                try await reload()
            }
        }
    }

    /// Asks the server about the file and compares with what is known (R87, R103).
    private func inspect() async throws {
        let (fetcher, reference) = (fetcher, download.reference)
        let answered = try await context.keeper.retrying { try await fetcher.inspect(reference) }
        try await reload()
        remote = answered.value
        if isOtherVersion(remote) { throw Self.remoteChanged(answered.answer) }
        isSequential =
            isSequential || !remote.hasRanges || remote.validator.isWeak && !mayGoOnWeakly
        if isSequential, download.tempInode != nil { try await tellBeginning(after: nil) }
        // The chunks of the server, so that its digests fit; otherwise as the record has them.
        let chunkSize = ChunkLayout.chunkSize(
            preferred: remote.chunkSize ?? download.chunkSize, forFileOf: remote.byteCount)
        let restarts = chunkSize != download.chunkSize || isSequential || isUnproven
        // What came under a weak validator stays in doubt.
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
            // From the first byte, and no state of an earlier run: what that one wrote and synced is read
            // back as it is now. Bytes of this run are hashed as they are written, in their turn.
            let wholeFile = PrefixHash(
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

    /// The temporary file of an earlier run, or a new one; without it no confirmed chunk counts.
    private func openTempFile() async throws -> TempFile {
        let (files, path) = (files, download.tempPath)
        let size = download.expectedSize ?? 0
        if let temp {
            // Opening it a second time would find it locked: by this very process.
            let now = try await context.onDisk("look at", "download's folder") {
                try temp.file.status()
            }
            if now.inode == download.tempInode, now.byteCount == size { return temp }
        } else if let inode = download.tempInode {
            let confirmed = confirmedByteCount
            let existing = try await context.onDisk("open", "download's folder") {
                let temp = try TempFile.reopen(path, inode: inode, size: size, files: files)
                if let temp {
                    // Unconfirmed bytes have their place on the disk already.
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
        // Our own, from a run that was cut short. Durably gone before the record forgets its name:
        // nobody else would take it away. Until then it stays open and so locked: were this process
        // stopped here, whoever takes over must not gather in a file that is removed when it wakes.
        try await context.onDisk("remove", "download's folder") {
            try files.remove(old)
            // Also when nothing was there: an earlier run may have stopped after the removal.
            try files.syncDirectoryAnew(TempFile.directory(of: old), scratch: old)
        }
        closeTempFile()
        try await context.store.prepareTempFile(at: path, of: context.lease)
        let made = try await context.onDisk("create", "download's folder") {
            try TempFile.create(path, size: size, files: files)
        }
        temp = made
        try await context.store.attachTempFile(inode: made.inode, of: context.lease)
        try await reload()
        return made
    }

    /// Lets go of the temporary file; what was not synced does not count anyway.
    func closeTempFile() {
        // Nothing that counts can be lost by a close that fails.
        try? temp?.file.close()
        temp = nil
    }

    private var confirmedByteCount: Int64 {
        guard let layout = download.layout else { return 0 }
        return layout.byteCount(of: confirmed)
    }
}

/// The download begins anew by itself.
struct DownloadRestart: Error {
    enum Reason {
        /// The record was set back already, or needs no setting back.
        case prepared
        /// The server has another version; what was downloaded is to be forgotten.
        case remoteChanged(ServerAnswer?)
    }

    var reason = Reason.prepared
    /// What to report when there has been too much of it.
    let error: TransferError
}

extension ChunkLayout {
    /// Number of bytes in these chunks.
    func byteCount(of chunks: ChunkSet) -> Int64 {
        guard let chunkCount, chunkCount > 0 else { return 0 }
        // Only the last chunk may be short, so counting is enough.
        let full = Int64(chunks.count) * chunkSize
        guard chunks.contains(chunkCount - 1), let last = range(ofChunk: chunkCount - 1) else {
            return full
        }
        return full - chunkSize + last.byteCount
    }
}
