package import KedgeModel

/// A problem or notice found by a check of the stores.
package struct CheckFinding: Hashable, Sendable {
    /// The kind of a finding. The names are stable: programs read them.
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The database's own check failed. Nothing else is checked then, because the rows may be
        /// wrong.
        case databaseDamaged
        /// A row points to a row that is not there.
        case referenceBroken
        /// A session has received bytes, but there is no staging area.
        case stagingMissing
        /// A staging area does not have all the bytes that its session has received.
        case stagingShort
        /// Received bytes do not have the SHA-256 of their chunk.
        case chunkDamaged
        /// The saved hash of a partial cannot be read, or does not match the stored bytes.
        case partialDamaged
        /// The saved hash of a session's prefix cannot be read, or does not match the stored bytes.
        case prefixDamaged
        /// A file has no blob.
        case blobMissing
        /// A file's blob has another size.
        case blobSizeWrong
        /// A file's blob does not have the file's SHA-256.
        case blobDamaged
        /// The chunk list of a file does not describe its bytes.
        case chunkListWrong
        /// The disk or the bucket cannot return bytes.
        case bytesUnreadable
        /// The sums of an owner are not those of its sessions and files.
        case quotaDrift
        /// Bytes under the name of a staging area that no row knows.
        case stagingOrphaned
        /// A blob that no row knows.
        case blobOrphaned
        /// A name among the service's own that the service never uses.
        case nameUnknown
        /// Bytes quarantined earlier. A notice, not a fault.
        case quarantined
        /// A temporary file that the service did not remove. A notice.
        case leftover
        /// Received bytes that the store cannot return for reading, so that at most their presence
        /// and size are known. A notice.
        case bytesUnchecked

        /// True when the bytes of a finished file are known to be wrong or gone.
        var isDamagedBlob: Bool { [.blobMissing, .blobSizeWrong, .blobDamaged].contains(self) }
    }

    package var kind: Kind
    /// The session, file, owner, staging key, digest or name concerned; never a path.
    package var id: String
    /// A sentence for people, without paths or secrets.
    package var detail: String
    /// The chunks concerned; empty when the finding is not about chunks.
    package var chunks: [ClosedRange<Int>]
    /// True once this run has repaired it.
    package var isRepaired = false

    package init(_ kind: Kind, _ id: String, _ detail: String, chunks: ChunkSet = ChunkSet()) {
        self.kind = kind
        self.id = id
        self.detail = detail
        self.chunks = chunks.ranges
    }

    /// True for information that is not a fault.
    package var isNotice: Bool { [.quarantined, .leftover, .bytesUnchecked].contains(kind) }
}

/// Counters of a check so far.
package struct CheckSummary: Hashable, Sendable {
    /// Sessions that have received bytes.
    package var sessionCount = 0
    /// Files that are not deleted.
    package var fileCount = 0
    package var blobCount = 0
    package var stagingCount = 0
    /// Bytes read back and hashed.
    package var hashedByteCount: Int64 = 0
    /// Bytes that the whole run will hash, as far as the rows know; zero without hashing.
    package var plannedByteCount: Int64 = 0
    package var findingCount = 0
    package var repairedCount = 0
    package var noticeCount = 0

    package init() {}

    /// True when nothing is wrong, or everything wrong was repaired.
    package var isClean: Bool { findingCount == repairedCount }
}
