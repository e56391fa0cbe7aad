internal import KedgeModel

/// How much of an unfinished chunk a kill or a power cut may cost.
package struct PartialLimits: Sendable, Equatable {
    /// Bytes after which what there is of a chunk is noted, without a sync.
    package var noteByteCount: Int64 = 1 << 20
    /// Bytes after which it is synced.
    package var syncByteCount: Int64 = 16 << 20
    /// Time after which it is synced.
    package var syncInterval = Duration.seconds(2)

    /// The service's limits for partial chunks.
    package init() {}
}

/// When what there is of a chunk is recorded. A value without a clock of its own.
struct PartialPace: Sendable, Equatable {
    /// What is due.
    enum Step: Sendable, Equatable {
        case nothing
        case note
        case sync
    }

    let limits: PartialLimits
    private(set) var notedByteCount: Int64 = 0
    private(set) var syncedByteCount: Int64 = 0
    /// The sync before, or the chunk's begin.
    private(set) var syncedAt: Timestamp

    /// Nothing of the chunk is there.
    init(limits: PartialLimits, at now: Timestamp) {
        self.limits = limits
        syncedAt = now
    }

    /// - Parameters:
    ///   - arrived: Bytes of the chunk that came, those in buffers included.
    ///   - written: Bytes of the chunk in the file.
    func step(arrived: Int64, written: Int64, at now: Timestamp) -> Step {
        let age = now.duration(since: syncedAt)
        // A clock that was set back says nothing.
        if arrived > syncedByteCount, age >= limits.syncInterval || age < .zero { return .sync }
        if written - syncedByteCount >= limits.syncByteCount { return .sync }
        return written - notedByteCount >= limits.noteByteCount ? .note : .nothing
    }

    mutating func noted(_ byteCount: Int64) { notedByteCount = byteCount }

    mutating func synced(_ byteCount: Int64, at now: Timestamp) {
        notedByteCount = byteCount
        syncedByteCount = byteCount
        syncedAt = now
    }
}
