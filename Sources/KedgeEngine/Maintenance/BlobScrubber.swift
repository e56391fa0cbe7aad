internal import KedgeFiles
internal import KedgeModel
internal import Logging

/// Scrubs the bytes at rest: every blob is read soon after its upload, and again from time to time.
/// A damaged blob is no longer served. An earlier copy replaces it if there is one, and an upload
/// of the same bytes heals it. Rows record which blob is due, so the scrub continues after a
/// restart, and the nodes of a fleet share the work.
final class BlobScrubber: Sendable {
    private let context: EngineContext
    private let rows: any FileStore & ScrubRecords
    private let fileService: FileService
    private let outcomes: ScrubOutcomes
    /// Returns true while clients transfer bytes; the scrub reads more slowly then.
    private let isTransferring: @Sendable () -> Bool

    init(
        context: EngineContext, fileService: FileService, outcomes: ScrubOutcomes,
        isTransferring: @escaping @Sendable () -> Bool
    ) {
        self.context = context
        rows = context.metadata
        self.fileService = fileService
        self.outcomes = outcomes
        self.isTransferring = isTransferring
    }

    /// Reads the blob that is due next, unless more urgent work becomes due meanwhile.
    ///
    /// - Returns: False when none is due.
    /// - Throws: `CancellationError`, and errors of the database; the blob stays due.
    func scrubNext() async throws -> Bool {
        guard let target = try await rows.claimScrub(lease: context.scrubLease) else {
            return false
        }
        // The chunk digests of the newest file were computed from these bytes.
        guard let file = try await rows.liveFiles(with: target.digest, limit: 1).first,
            let digests = try await listedDigests(of: file)
        else {
            // A finalize is under way, or the last file was deleted just now.
            try await outcomes.end(target, .undecided)
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
            try await rows.keepSuperseded(
                at: open, until: now.advanced(by: context.configuration.supersededLifetime))
        }
        var copies = try await rows.releasableBlobs(at: now, limit: 100)
        while !copies.isEmpty, !context.isEnding {
            for copy in copies { try await outcomes.release(copy) }
            copies = try await rows.releasableBlobs(at: now, limit: 100)
        }
        try await logBacklog()
    }

    /// Creates missing scrub rows for files that older nodes stored. Looks at every file, so it
    /// should run rarely.
    func addMissingScrubs() async throws {
        var last = try await rows.addMissingScrubs(after: nil, at: context.clock.now())
        while let digest = last, !context.isEnding {
            last = try await rows.addMissingScrubs(after: digest, at: context.clock.now())
        }
    }

    /// Returns the backlog of the scrub.
    func scrubBacklog() async throws -> ScrubBacklog {
        try await rows.scrubBacklog()
    }

    /// The counts of the scrub since this process started.
    var scrubbed: ScrubCounts { outcomes.counts }

    /// Logs the counts of the scrub since this process started, and its backlog.
    func logScrub() async throws {
        let (backlog, counts) = (try await rows.scrubBacklog(), scrubbed)
        context.logger.info(
            "scrub",
            metadata: [
                "verified": "\(counts.verifiedCount)", "damaged": "\(counts.damagedCount)",
                "restored": "\(counts.restoredCount)", "bytes": "\(counts.byteCount)",
                "waiting.new": "\(backlog.newCount)", "damaged.now": "\(backlog.damagedCount)",
            ])
    }

    private func logBacklog() async throws {
        let backlog = try await rows.scrubBacklog()
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

    /// Maximum number of bytes a second that the scrub reads now.
    private var scrubRate: Int64 {
        max(1, context.configuration.scrubBytesPerSecond / (isTransferring() ? 8 : 1))
    }

    /// - Returns: Nil when the file was deleted meanwhile.
    private func listedDigests(of file: FileRecord) async throws -> [SHA256Digest]? {
        do {
            return try await rows.chunkDigests(of: file)
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
        defer { outcomes.countRead(reading.tally.summary.hashedByteCount) }
        let renewer = ScrubLeaseRenewer(context: context, target: target)
        let result = try await reading.check(
            opening: { try await fileService.openWhole(file) }, from: target.checkedByteCount,
            proceed: { try await renewer.proceed(checked: $0) })
        switch result {
        case .right?: try await outcomes.confirm(target, file)
        case .damaged?: try await replaceOrMark(target, reading, renewer)
        case .undecided?: try await outcomes.end(target, .undecided)
        case .interrupted?: try await outcomes.end(target, .interrupted)
        // The blob was replaced, another node has the lease, or this scrub was interrupted.
        case nil: if renewer.isInterrupted { try await outcomes.end(target, .interrupted) }
        }
    }

    /// Replaces a damaged blob with an intact earlier copy, or marks it as damaged.
    private func replaceOrMark(
        _ target: ScrubTarget, _ reading: BlobReading, _ renewer: ScrubLeaseRenewer
    ) async throws {
        for copy in try await rows.supersededBlobs(of: target.digest) {
            let result = try await reading.check(
                opening: { try await context.bytes.openSuperseded(copy) },
                proceed: { _ in try await renewer.proceed(checked: 0, untilDone: true) })
            if result == .right, try await outcomes.restore(copy, target) { return }
        }
        try await outcomes.markDamaged(target)
    }
}
