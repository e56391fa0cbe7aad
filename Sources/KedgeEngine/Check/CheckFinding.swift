package import KedgeModel

/// One thing that a check of the stores found.
package struct CheckFinding: Hashable, Sendable {
    /// What is wrong. The names are stable text: programs read them.
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The database's own check failed. Nothing else is checked then: rows that may be
        /// wrong say nothing about bytes.
        case databaseDamaged
        /// A row points to a row that is not there.
        case referenceBroken
        /// A session has received bytes, but there is no staging area.
        case stagingMissing
        /// A staging area does not have all the bytes that its session has received.
        case stagingShort
        /// Received bytes do not have the SHA-256 of their chunk.
        case chunkDamaged
        /// The saved hash of a partial cannot be read, or is not of the bytes that are there.
        case partialDamaged
        /// The saved hash of a session's prefix cannot be read, or is not of the bytes there.
        case prefixDamaged
        /// A file has no blob.
        case blobMissing
        /// A file's blob has another size.
        case blobSizeWrong
        /// A file's blob does not have the file's SHA-256.
        case blobDamaged
        /// The chunk list of a file does not describe its bytes.
        case chunkListWrong
        /// The disk or the bucket fails to give bytes.
        case bytesUnreadable
        /// Bytes under the name of a staging area that no row knows.
        case stagingOrphaned
        /// A blob that no row knows.
        case blobOrphaned
        /// A name that the service never gives, among its own.
        case nameUnknown
        /// Bytes that were put aside before. A notice, not a fault.
        case quarantined
        /// Something that the service made for a moment and did not remove. A notice.
        case leftover
        /// Bytes on their way in that the store lends to nobody, so that only their presence and size are
        /// known, or not even that. A notice.
        case bytesUnchecked

        /// True when the bytes of a finished file are known to be wrong or gone.
        var isDamagedBlob: Bool { [.blobMissing, .blobSizeWrong, .blobDamaged].contains(self) }
    }

    package var kind: Kind
    /// The session, file, staging key, digest or name that it is about; never a path.
    package var id: String
    /// A sentence for people, without paths and secrets.
    package var detail: String
    /// The chunks that it is about; empty when it is not about chunks.
    package var chunks: [ClosedRange<Int>]
    /// True once a repair of this run has dealt with it.
    package var isRepaired = false

    package init(_ kind: Kind, _ id: String, _ detail: String, chunks: ChunkSet = ChunkSet()) {
        self.kind = kind
        self.id = id
        self.detail = detail
        self.chunks = chunks.ranges
    }

    /// True for what is told, but no fault.
    package var isNotice: Bool { [.quarantined, .leftover, .bytesUnchecked].contains(kind) }
}

/// What a check did so far.
package struct CheckSummary: Hashable, Sendable {
    /// Sessions that have bytes on their way in.
    package var sessionCount = 0
    /// Files that are not deleted.
    package var fileCount = 0
    package var blobCount = 0
    package var stagingCount = 0
    /// Bytes that were read back and hashed.
    package var hashedByteCount: Int64 = 0
    /// Bytes that the whole run will hash, as far as the rows know; zero without hashing.
    package var plannedByteCount: Int64 = 0
    package var findingCount = 0
    package var repairedCount = 0
    package var noticeCount = 0

    package init() {}

    /// True when nothing is wrong, or nothing any more.
    package var isClean: Bool { findingCount == repairedCount }
}
