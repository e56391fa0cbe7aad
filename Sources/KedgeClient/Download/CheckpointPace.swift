package import KedgeModel

/// Decides when a chunk's progress is recorded. The caller passes the time.
package struct CheckpointPace: Sendable, Equatable {
    /// The step that is due.
    package enum Step: Sendable, Equatable {
        case nothing
        case note
        case sync
    }

    let limits: CheckpointLimits
    private(set) var notedByteCount: Int64 = 0
    private(set) var syncedByteCount: Int64 = 0
    /// Time of the last sync, or of the chunk's start.
    private(set) var syncedAt: Timestamp

    package init(
        limits: CheckpointLimits,
        notedByteCount: Int64 = 0,
        syncedByteCount: Int64 = 0,
        syncedAt: Timestamp
    ) {
        self.limits = limits
        self.notedByteCount = notedByteCount
        self.syncedByteCount = syncedByteCount
        self.syncedAt = syncedAt
    }

    /// Starts a chunk without bytes.
    package init(limits: CheckpointLimits, at now: Timestamp) {
        self.limits = limits
        syncedAt = now
    }

    /// Returns the step that is due.
    ///
    /// - Parameters:
    ///   - arrived: Number of bytes received of the chunk, including buffered ones.
    ///   - written: Number of the chunk's bytes in the file.
    package func step(arrived: Int64, written: Int64, at now: Timestamp) -> Step {
        let age = now.duration(since: syncedAt)
        // A negative age means that the clock was set back, so the time says nothing.
        if arrived > syncedByteCount, age >= limits.syncInterval || age < .zero { return .sync }
        if written - syncedByteCount >= limits.syncByteCount { return .sync }
        return written - notedByteCount >= limits.noteByteCount ? .note : .nothing
    }

    package mutating func noted(_ byteCount: Int64) { notedByteCount = byteCount }

    package mutating func synced(_ byteCount: Int64, at now: Timestamp) {
        notedByteCount = byteCount
        syncedByteCount = byteCount
        syncedAt = now
    }
}
