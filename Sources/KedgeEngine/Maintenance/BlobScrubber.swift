internal import KedgeFiles
internal import KedgeLocks
internal import KedgeModel
internal import Logging

/// Scrubs the bytes at rest: every blob is read soon after its upload, and again from time to time.
/// A damaged blob is no longer served. An earlier copy replaces it if there is one, and an upload
/// of the same bytes heals it. Rows record which blob is due, so the scrub continues after a
/// restart, and the nodes of a fleet share the work.
final class BlobScrubber: Sendable {
    private let context: EngineContext
    private let fileService: FileService
    private let damageReports: DamageReports
    private let digestLocks: KeyedLock<SHA256Digest>
    private let scrubCounts = Mutex(ScrubCounts())
    /// Returns true while clients transfer bytes; the scrub reads more slowly then.
    let isTransferring: @Sendable () -> Bool

    init(
        context: EngineContext, fileService: FileService, damageReports: DamageReports,
        digestLocks: KeyedLock<SHA256Digest>, isTransferring: @escaping @Sendable () -> Bool
    ) {
        self.context = context
        self.fileService = fileService
        self.damageReports = damageReports
        self.digestLocks = digestLocks
        self.isTransferring = isTransferring
    }

    /// Reads the blob that is due next, unless more urgent work becomes due meanwhile.
    ///
    /// - Returns: False when none is due.
    /// - Throws: `CancellationError`, and errors of the database; the blob stays due.
    func scrubNext() async throws -> Bool {
        guard let target = try await context.metadata.claimScrub(lease: scrubLease) else {
            return false
        }
        // The chunk digests of the newest file were computed from these bytes.
        guard let file = try await context.metadata.liveFiles(with: target.digest, limit: 1).first,
            let digests = try await listedDigests(of: file)
        else {
            // A finalize is under way, or the last file was deleted just now.
            try await end(target, .undecided)
            return true
        }
        try await scrub(target, file, digests)
        return true
    }

    /// Extends superseded copies that are being read, removes those no longer needed, and logs a
    /// warning when the scrub of new files is behind. Called about once a minute.
    func tendScrub() async throws {
        let now = context.clock.now()
        let open = fileService.openLocations
        if !open.isEmpty {
            try await context.metadata.keepSuperseded(
                at: open, until: now.advanced(by: context.configuration.supersededLifetime))
        }
        var copies = try await context.metadata.releasableBlobs(at: now, limit: 100)
        while !copies.isEmpty, !context.isEnding {
            for copy in copies { try await release(copy) }
            copies = try await context.metadata.releasableBlobs(at: now, limit: 100)
        }
        try await logBacklog()
    }

    /// Creates missing scrub rows for files that older nodes stored. Looks at every file, so it
    /// should run rarely.
    func addMissingScrubs() async throws {
        var last = try await context.metadata.addMissingScrubs(after: nil, at: context.clock.now())
        while let digest = last, !context.isEnding {
            last = try await context.metadata.addMissingScrubs(
                after: digest, at: context.clock.now())
        }
    }

    /// Returns the backlog of the scrub.
    func scrubBacklog() async throws -> ScrubBacklog {
        try await context.metadata.scrubBacklog()
    }

    /// The counts of the scrub since this process started.
    var scrubbed: ScrubCounts { scrubCounts.withLock { $0 } }

    /// Logs the counts of the scrub since this process started, and its backlog.
    func logScrub() async throws {
        let (backlog, counts) = (try await context.metadata.scrubBacklog(), scrubbed)
        context.logger.info(
            "scrub",
            metadata: [
                "verified": "\(counts.verifiedCount)", "damaged": "\(counts.damagedCount)",
                "restored": "\(counts.restoredCount)", "bytes": "\(counts.byteCount)",
                "waiting.new": "\(backlog.newCount)", "damaged.now": "\(backlog.damagedCount)",
            ])
    }

    private func logBacklog() async throws {
        let backlog = try await context.metadata.scrubBacklog()
        guard let oldest = backlog.oldestNew else { return }
        let now = context.clock.now()
        guard now > oldest.advanced(by: context.configuration.scrubNewFilesWithin) else { return }
        let lag = now.millisecondsSinceEpoch - oldest.millisecondsSinceEpoch
        context.logger.warning(
            "scrub of new files is behind",
            metadata: [
                "files": "\(backlog.newCount)", "lag.seconds": "\(lag / 1000)",
                "target.seconds": "\(context.configuration.scrubNewFilesWithin.components.seconds)",
            ])
    }

    private var scrubLease: WorkLease {
        let now = context.clock.now()
        return WorkLease(
            holder: context.nodeName, now: now,
            until: now.advanced(by: context.configuration.scrubLease))
    }

    /// Maximum number of bytes a second that the scrub reads now.
    private var scrubRate: Int64 {
        max(1, context.configuration.scrubBytesPerSecond / (isTransferring() ? 8 : 1))
    }

    /// - Returns: Nil when the file was deleted meanwhile.
    private func listedDigests(of file: FileRecord) async throws -> [SHA256Digest]? {
        do {
            return try await context.metadata.chunkDigests(of: file)
        } catch MetadataError.notFound {
            return nil
        }
    }

    private func scrub(
        _ target: ScrubTarget, _ file: FileRecord, _ digests: [SHA256Digest]
    ) async throws {
        let reading = BlobReading(
            scrubber: ByteScrubber(pool: context.pool) { [self] in scrubRate },
            tally: CheckTally { _ in }, failsForGood: context.bytes is any LocalByteStore,
            layout: ChunkLayout(fileSize: file.byteCount, chunkSize: file.chunkSize),
            digests: digests, whole: file.digest)
        defer {
            let count = reading.tally.summary.hashedByteCount
            scrubCounts.withLock { $0.byteCount += count }
        }
        let keeper = LeaseRenewer(context: context, target: target)
        let verdict = try await reading.verdict(
            opening: { try await fileService.openWhole(file) }, from: target.checkedByteCount,
            proceed: { try await keeper.proceed(checked: $0) })
        switch verdict {
        case .right?: try await confirm(target, file)
        case .damaged?: try await replaceOrMark(target, reading, keeper)
        case .undecided?: try await end(target, .undecided)
        case .interrupted?: try await end(target, .interrupted)
        // The blob was replaced, another node has the lease, or this scrub was interrupted.
        case nil: if keeper.isInterrupted { try await end(target, .interrupted) }
        }
    }

    private func confirm(_ target: ScrubTarget, _ file: FileRecord) async throws {
        let isCurrent = try await context.metadata.finishScrub(
            target, .right, lease: scrubLease, nextAt: nextScrub)
        guard isCurrent else { return }
        scrubCounts.withLock { $0.verifiedCount += 1 }
        guard file.damagedAt != nil else { return }
        context.logger.notice(
            "damaged file is intact again", metadata: ["file.sha256": "\(target.digest)"])
    }

    /// Ends the work without a result.
    private func end(_ target: ScrubTarget, _ verdict: ScrubResult) async throws {
        let pause = context.configuration.undecidedScrubPause
        _ = try await context.metadata.finishScrub(
            target, verdict, lease: scrubLease, nextAt: context.clock.now().advanced(by: pause))
    }

    private var nextScrub: Timestamp {
        context.configuration.scrubPeriod > .zero
            ? context.clock.now().advanced(by: context.configuration.scrubPeriod * 0.9)
            : Timestamp(millisecondsSinceEpoch: .max)
    }

    /// Replaces a damaged blob with an intact earlier copy, or marks it as damaged.
    private func replaceOrMark(
        _ target: ScrubTarget, _ reading: BlobReading, _ keeper: LeaseRenewer
    ) async throws {
        for copy in try await context.metadata.supersededBlobs(of: target.digest) {
            let verdict = try await reading.verdict(
                opening: { try await context.bytes.openSuperseded(copy) },
                proceed: { _ in try await keeper.proceed(checked: 0, untilDone: true) })
            guard verdict == .right, try await restore(copy, target) else { continue }
            scrubCounts.withLock { $0.restoredCount += 1 }
            try await damageReports.logDamage(
                of: target.digest,
                "damaged file was replaced by an earlier copy")
            return
        }
        let wasMarked =
            try await context.metadata.liveFiles(with: target.digest, limit: 1)
            .first?.damagedAt != nil
        let isCurrent = try await context.metadata.finishScrub(
            target, .damaged, lease: scrubLease,
            nextAt: context.clock.now().advanced(by: context.configuration.damagedScrubPeriod))
        guard isCurrent, !wasMarked else { return }
        scrubCounts.withLock { $0.damagedCount += 1 }
        try await damageReports.logDamage(of: target.digest, "file is damaged")
    }

    /// - Returns: False when the copy is gone, or the blob was replaced meanwhile.
    private func restore(_ copy: SupersededBlob, _ target: ScrubTarget) async throws -> Bool {
        guard copy.location == nil else {
            let keepUntil = context.clock.now().advanced(
                by: context.configuration.supersededLifetime)
            return try await context.metadata.restoreSuperseded(
                copy, of: target, lease: scrubLease, nextAt: nextScrub, keepUntil: keepUntil)
        }
        // No upload of the same bytes may take the name between the check and the rename.
        return try await digestLocks.withLock(target.digest) {
            guard
                try await context.metadata.renewScrub(
                    target, lease: scrubLease, checkedByteCount: 0),
                try await context.bytes.restoreSuperseded(copy)
            else { return false }
            let isCurrent = try await context.metadata.finishScrub(
                target, .right, lease: scrubLease, nextAt: nextScrub)
            try await context.metadata.forgetSuperseded(copy)
            return isCurrent
        }
    }

    /// Removes the superseded copy of a blob that was read and found intact.
    private func release(_ copy: SupersededBlob) async throws {
        guard copy.location == nil else {
            return try await context.metadata.forgetSuperseded(copy)
        }
        try await digestLocks.withLock(copy.digest) {
            // An upload may have superseded the blob that was read.
            guard try await context.metadata.isReleasable(copy, at: context.clock.now()) else {
                return
            }
            try await context.bytes.removeSuperseded(copy)
            try await context.metadata.forgetSuperseded(copy)
        }
    }
}
