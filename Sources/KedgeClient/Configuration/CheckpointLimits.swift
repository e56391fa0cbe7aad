internal import KedgeModel

/// Limits of what a kill or a power cut may cost of an unfinished chunk.
package struct CheckpointLimits: Sendable, Equatable {
    /// Number of bytes after which a chunk's progress is noted, without a sync.
    package var noteByteCount: Int64 = 1 << 20
    /// Number of bytes after which it is synced.
    package var syncByteCount: Int64 = 16 << 20
    /// Time after which it is synced.
    package var syncInterval = Duration.seconds(2)

    /// Creates the same limits as the service has for partial chunks.
    package init() {}
}
