package import KedgeModel

/// A copy of a blob whose name a later upload of the same bytes has taken.
///
/// Of two copies neither is trusted by its size. The later one is the blob, and the earlier one stays
/// until a scrub has read the later one: when that is damaged, the earlier one takes its place again.
package struct SupersededBlob: Hashable, Sendable {
    package var digest: SHA256Digest
    package var byteCount: Int64
    /// Names the copy. In a store that names blobs by their digest: the staging area that took the
    /// name; elsewhere the staging area that the copy was.
    package var key: StagingKey
    /// Where the copy is; nil where blobs are named by their digest.
    package var location: String?
    /// Until then readers may still be reading it.
    package var keepUntil: Timestamp

    package init(
        digest: SHA256Digest, byteCount: Int64, key: StagingKey, location: String?,
        keepUntil: Timestamp
    ) {
        self.digest = digest
        self.byteCount = byteCount
        self.key = key
        self.location = location
        self.keepUntil = keepUntil
    }

    /// The copy as a blob of its own, for stores that record locations.
    package var blob: BlobName {
        BlobName(digest: digest, byteCount: byteCount, location: location)
    }
}

/// A blob that a node has claimed for reading.
package struct ScrubTarget: Hashable, Sendable {
    package var digest: SHA256Digest
    package var byteCount: Int64
    /// Grows when other bytes become the blob: a verdict on earlier ones does not count.
    package var generation: Int64
    /// True until these bytes were read once.
    package var isNew: Bool
    /// When the blob was due.
    package var dueAt: Timestamp
    /// Bytes from the start that an interrupted scrub has found right.
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

/// What reading a blob came to.
package enum ScrubVerdict: Hashable, Sendable {
    /// Every chunk has its digest.
    case right
    /// Bytes are wrong or gone, and no superseded copy is right.
    case damaged
    /// The store could not give the bytes now; the blob is left alone until it is due next.
    case undecided
    /// Something more urgent is due; the work goes on later from where it stands.
    case interrupted
}

/// How far the scrub is behind, and what it has found.
package struct ScrubBacklog: Hashable, Sendable {
    /// Blobs that were never read since they were stored.
    package var newCount: Int
    /// Since when the oldest of them waits.
    package var oldestNew: Timestamp?
    /// Blobs that are damaged.
    package var damagedCount: Int

    package init(newCount: Int, oldestNew: Timestamp?, damagedCount: Int) {
        self.newCount = newCount
        self.oldestNew = oldestNew
        self.damagedCount = damagedCount
    }
}

/// Rows about the state of stored bytes: when each blob was read last, which are damaged, and which
/// superseded copies are kept. Each operation is one transaction, as in ``MetadataStore``.
///
/// Every blob that a file needs has a row; ``MetadataStore/completeFinalize(of:at:location:keepUntil:)``
/// makes it, and the last file takes it along.
package protocol ScrubRecords: Sendable {
    /// Records that the blob's present copy is about to lose its name to the bytes of a staging area: from now
    /// on nothing is known of the bytes under the name, and no copy is released before they were read. For
    /// stores that name blobs by their digest.
    ///
    /// - Returns: False when the copy need not be kept: it was never read, and two others are there already.
    func supersede(_ blob: SupersededBlob, at now: Timestamp) async throws -> Bool
    /// The copies of these bytes that are kept beside the blob, the latest first.
    func supersededBlobs(of digest: SHA256Digest) async throws -> [SupersededBlob]
    /// Up to `limit` copies that nobody needs any more: the blob was read and found right, and their
    /// time is over.
    func releasableBlobs(at now: Timestamp, limit: Int) async throws -> [SupersededBlob]
    /// True while ``releasableBlobs(at:limit:)`` could answer this copy.
    func isReleasable(_ blob: SupersededBlob, at now: Timestamp) async throws -> Bool
    /// Forgets a copy. With a location, its staging area becomes garbage; without one the bytes are
    /// gone already.
    func forgetSuperseded(_ blob: SupersededBlob) async throws
    /// Makes a copy the blob again and the blob a copy, which stays until `keepUntil`; the blob counts
    /// as read. For blobs with a location.
    ///
    /// - Returns: False when the blob is another one by now, the copy is gone, or another node has the lease;
    ///   nothing was changed.
    func restoreSuperseded(
        _ blob: SupersededBlob, of target: ScrubTarget, lease: WorkLease, nextAt: Timestamp,
        keepUntil: Timestamp
    ) async throws -> Bool
    /// Keeps copies for longer, because they are being read.
    func keepSuperseded(at locations: [String], until time: Timestamp) async throws

    /// Takes the next blob that is due: new ones first, then damaged ones, which may have a right copy, then by
    /// the time at which they are due. Nodes
    /// that ask at once get different ones. Blobs that no file needs any more are forgotten.
    func claimScrub(lease: WorkLease) async throws -> ScrubTarget?
    /// Renews the lease and records how far reading has come.
    ///
    /// - Returns: False when the blob is another one by now, or another node has taken it.
    func renewScrub(
        _ target: ScrubTarget, lease: WorkLease, checkedByteCount: Int64
    ) async throws -> Bool
    /// Records a verdict and when the blob is due again; ends the lease.
    ///
    /// - Returns: False when the blob is another one by now, or another node has the lease; nothing was
    ///   changed.
    func finishScrub(
        _ target: ScrubTarget, _ verdict: ScrubVerdict, lease: WorkLease, nextAt: Timestamp
    ) async throws -> Bool
    /// Marks the blob of a file as damaged whose bytes turned out to be gone, and makes it due; ends a reading
    /// that is under way.
    ///
    /// - Returns: False when it was marked before, or the blob is elsewhere by now.
    func markDamaged(_ file: FileRecord, at now: Timestamp) async throws -> Bool
    /// Makes rows for blobs that have none: files of nodes that knew nothing of them. Looks at some, in the
    /// order of their digests.
    ///
    /// - Returns: Where to go on; nil at the end.
    func addMissingScrubs(
        after digest: SHA256Digest?, at now: Timestamp
    ) async throws -> SHA256Digest?
    func scrubBacklog() async throws -> ScrubBacklog

    /// Up to `limit` files that are not deleted and have these bytes, newest first.
    func liveFiles(with digest: SHA256Digest, limit: Int) async throws -> [FileRecord]
    /// As ``MetadataStore/files(of:after:limit:)``, those whose bytes are damaged.
    func damagedFiles(
        of owner: OwnerID, after: FileCursor?, limit: Int
    ) async throws -> [FileRecord]
}
