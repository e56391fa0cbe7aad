internal import KedgeFiles
internal import KedgeLocks
internal import KedgeModel
internal import Logging

/// Acts on the results of the scrub: records and counts them, puts an earlier copy in the place of
/// a damaged blob, and removes superseded copies.
final class ScrubOutcomes: Sendable {
    private let context: EngineContext
    private let rows: any ScrubRecords
    private let damageReports: DamageReports
    private let digestLocks: KeyedLock<SHA256Digest>
    private let scrubCounts = Mutex(ScrubCounts())

    init(
        context: EngineContext, damageReports: DamageReports, digestLocks: KeyedLock<SHA256Digest>
    ) {
        self.context = context
        rows = context.metadata
        self.damageReports = damageReports
        self.digestLocks = digestLocks
    }

    /// The counts since this process started.
    var counts: ScrubCounts { scrubCounts.withLock { $0 } }

    /// Counts bytes that were read.
    func countRead(_ byteCount: Int64) { scrubCounts.withLock { $0.byteCount += byteCount } }

    /// Records that a blob is intact.
    func confirm(_ target: ScrubTarget, _ file: FileRecord) async throws {
        let isCurrent = try await rows.finishScrub(
            target, .right, lease: context.scrubLease, nextAt: nextScrub)
        guard isCurrent else { return }
        scrubCounts.withLock { $0.verifiedCount += 1 }
        guard file.damagedAt != nil else { return }
        context.logger.notice(
            "damaged file is intact again", metadata: ["file.sha256": "\(target.digest)"])
    }

    /// Ends the work on a blob without proof that its bytes are right or damaged.
    func end(_ target: ScrubTarget, _ result: ScrubResult) async throws {
        let pause = context.configuration.undecidedScrubPause
        _ = try await rows.finishScrub(
            target, result, lease: context.scrubLease,
            nextAt: context.clock.now().advanced(by: pause))
    }

    /// Marks a blob as damaged that has no intact earlier copy.
    func markDamaged(_ target: ScrubTarget) async throws {
        let wasMarked =
            try await rows.liveFiles(with: target.digest, limit: 1).first?.damagedAt != nil
        let isCurrent = try await rows.finishScrub(
            target, .damaged, lease: context.scrubLease,
            nextAt: context.clock.now().advanced(by: context.configuration.damagedScrubPeriod))
        guard isCurrent, !wasMarked else { return }
        scrubCounts.withLock { $0.damagedCount += 1 }
        try await damageReports.logDamage(of: target.digest, "file is damaged")
    }

    /// Replaces a damaged blob with an intact earlier copy.
    ///
    /// - Returns: False when the copy is gone, or the blob was replaced meanwhile.
    func restore(_ copy: SupersededBlob, _ target: ScrubTarget) async throws -> Bool {
        guard try await putBack(copy, target) else { return false }
        scrubCounts.withLock { $0.restoredCount += 1 }
        try await damageReports.logDamage(
            of: target.digest, "damaged file was replaced by an earlier copy")
        return true
    }

    private func putBack(_ copy: SupersededBlob, _ target: ScrubTarget) async throws -> Bool {
        guard copy.location == nil else {
            let keepUntil = context.clock.now().advanced(
                by: context.configuration.supersededLifetime)
            return try await rows.restoreSuperseded(
                copy, of: target, lease: context.scrubLease, nextAt: nextScrub,
                keepUntil: keepUntil)
        }
        // No upload of the same bytes may take the name between the check and the rename.
        return try await digestLocks.withLock(target.digest) {
            guard
                try await rows.renewScrub(
                    target, lease: context.scrubLease, checkedByteCount: 0),
                try await context.bytes.restoreSuperseded(copy)
            else { return false }
            let isCurrent = try await rows.finishScrub(
                target, .right, lease: context.scrubLease, nextAt: nextScrub)
            try await rows.forgetSuperseded(copy)
            return isCurrent
        }
    }

    /// Removes the superseded copy of a blob that was read and found intact.
    func release(_ copy: SupersededBlob) async throws {
        guard copy.location == nil else {
            return try await rows.forgetSuperseded(copy)
        }
        try await digestLocks.withLock(copy.digest) {
            // An upload may have superseded the blob that was read.
            guard try await rows.isReleasable(copy, at: context.clock.now()) else {
                return
            }
            try await context.bytes.removeSuperseded(copy)
            try await rows.forgetSuperseded(copy)
        }
    }

    private var nextScrub: Timestamp {
        context.configuration.scrubPeriod > .zero
            ? context.clock.now().advanced(by: context.configuration.scrubPeriod * 0.9)
            : Timestamp(millisecondsSinceEpoch: .max)
    }
}
