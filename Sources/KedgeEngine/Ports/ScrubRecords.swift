package import KedgeModel

/// A blob that a node has claimed for a scrub.
package struct ScrubTarget: Hashable, Sendable {
    package var digest: SHA256Digest
    package var byteCount: Int64
    /// Grows when other bytes become the blob, so that a result for earlier bytes does not count.
    package var generation: Int64
    /// True until these bytes were read once.
    package var isNew: Bool
    /// The time at which the blob was due.
    package var dueAt: Timestamp
    /// Number of bytes from the start that an interrupted scrub has verified.
    package var checkedByteCount: Int64

    package init(
        digest: SHA256Digest, byteCount: Int64, generation: Int64, isNew: Bool,
        dueAt: Timestamp, checkedByteCount: Int64
    ) {
        self.digest = digest
        self.byteCount = byteCount
        self.generation = generation
        self.isNew = isNew
        self.dueAt = dueAt
        self.checkedByteCount = checkedByteCount
    }
}

/// The result of reading a blob.
package enum ScrubResult: Hashable, Sendable {
    /// Every chunk has its digest.
    case right
    /// Bytes are wrong or gone, and no superseded copy is intact.
    case damaged
    /// The store could not return the bytes now; the blob is left alone until the next attempt.
    case undecided
    /// A more urgent blob is due; the scrub continues later from its last position.
    case interrupted
}

/// The backlog of the scrub, and what it has found.
package struct ScrubBacklog: Hashable, Sendable {
    /// Blobs that were not read since they were stored.
    package var newCount: Int
    /// The time since which the oldest of them waits.
    package var oldestNew: Timestamp?
    /// Blobs that are damaged.
    package var damagedCount: Int

    package init(newCount: Int, oldestNew: Timestamp?, damagedCount: Int) {
        self.newCount = newCount
        self.oldestNew = oldestNew
        self.damagedCount = damagedCount
    }
}

/// The state of stored bytes: when each blob was last read, which blobs are damaged, and which
/// superseded copies are kept. Each operation is one transaction, as in ``MetadataStore``.
///
/// Every blob that a file needs has a row.
/// ``FinalizeQueue/completeFinalize(of:at:location:keepUntil:)`` creates it, and deleting the last
/// file removes it.
package protocol ScrubRecords: Sendable {
    /// Records that the bytes of a staging area are about to take the name of the blob's present
    /// copy. The bytes under the name then count as unread, and no copy is released before they
    /// were read. For stores that name blobs by their digest.
    ///
    /// - Returns: False when the copy need not be kept: it was never read, and two others already
    ///   exist.
    func supersede(_ blob: SupersededBlob, at now: Timestamp) async throws -> Bool
    /// Returns the kept copies of these bytes, the latest first.
    func supersededBlobs(of digest: SHA256Digest) async throws -> [SupersededBlob]
    /// Returns up to `limit` copies that are no longer needed: the blob was read and is intact, and
    /// the time to keep them is over.
    func releasableBlobs(at now: Timestamp, limit: Int) async throws -> [SupersededBlob]
    /// Returns true while ``releasableBlobs(at:limit:)`` could return this copy.
    func isReleasable(_ blob: SupersededBlob, at now: Timestamp) async throws -> Bool
    /// Deletes the row of a copy. With a location, its staging area becomes garbage; without one,
    /// the bytes are already gone.
    func forgetSuperseded(_ blob: SupersededBlob) async throws
    /// Swaps a copy and the blob. The former blob stays as a copy until `keepUntil`; the new blob
    /// counts as read. For blobs with a location.
    ///
    /// - Returns: False when the blob has changed, the copy is gone, or another node has the lease.
    ///   Nothing is changed then.
    func restoreSuperseded(
        _ blob: SupersededBlob, of target: ScrubTarget, lease: WorkLease, nextAt: Timestamp,
        keepUntil: Timestamp
    ) async throws -> Bool
    /// Extends the time to keep copies that are being read.
    func keepSuperseded(at locations: [String], until time: Timestamp) async throws

    /// Claims the next due blob: new ones first, then damaged ones, which may have an intact copy,
    /// then by due time. Concurrent callers get different blobs. Drops rows of blobs that no file
    /// needs any more.
    func claimScrub(lease: WorkLease) async throws -> ScrubTarget?
    /// Renews the lease and records how many bytes were read.
    ///
    /// - Returns: False when the blob has changed, or another node has taken it.
    func renewScrub(
        _ target: ScrubTarget, lease: WorkLease, checkedByteCount: Int64
    ) async throws -> Bool
    /// Records the result and the next due time; ends the lease.
    ///
    /// - Returns: False when the blob has changed, or another node has the lease. Nothing is
    ///   changed then.
    func finishScrub(
        _ target: ScrubTarget, _ result: ScrubResult, lease: WorkLease, nextAt: Timestamp
    ) async throws -> Bool
    /// Marks the blob of a file as damaged because its bytes are gone, and makes it due. Ends a
    /// scrub in progress.
    ///
    /// - Returns: False when it was already marked, or the blob is elsewhere by now.
    func markDamaged(_ file: FileRecord, at now: Timestamp) async throws -> Bool
    /// Creates missing rows for a page of blobs, in the order of their digests. Blobs lack a row
    /// when an older node stored them.
    ///
    /// - Returns: The digest to continue after; nil at the end.
    func addMissingScrubs(
        after digest: SHA256Digest?, at now: Timestamp
    ) async throws -> SHA256Digest?
    func scrubBacklog() async throws -> ScrubBacklog

    /// Returns up to `limit` files that are not deleted and have these bytes, newest first.
    func liveFiles(with digest: SHA256Digest, limit: Int) async throws -> [FileRecord]
    /// Returns the files whose bytes are damaged, paged as
    /// ``FileStore/files(of:after:limit:)``.
    func damagedFiles(
        of owner: OwnerID, after: FileCursor?, limit: Int
    ) async throws -> [FileRecord]
}
